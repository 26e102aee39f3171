package probe

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// FuzzRequest: whatever is sent, in virtual time the connection is over within
// two patiences, what came back is nothing or HTTP, and the next probe is
// answered at once. A goroutine that is left hanging makes synctest panic.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"", "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "GET /metrics HTTP/1.0\n\n", "GET /livez\r\n",
		"POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n",
		"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET http://[::1%25x]:y/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /" + strings.Repeat("%", 9000) + " HTTP/1.1\r\n\r\n", "HEAD /%00\x00 HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		synctest.Test(t, func(t *testing.T) {
			h := serveMemory(t, paths(), Counters{})
			c, start := h.dial(t), time.Now()
			go func() { _, _ = c.Write(request) }()
			got, err := io.ReadAll(c)
			if err != nil || len(got) > 0 && !strings.HasPrefix(string(got), "HTTP/1.") {
				t.Errorf("%q, %v", got, err)
			}
			if d := time.Since(start); d > 2*patience {
				t.Errorf("took %v", d)
			}
			livez(t, h)
			if h.log.String() != "" {
				t.Errorf("log: %s", h.log)
			}
			_ = c.Close()
			h.stop()
			time.Sleep(time.Second) // net/http's own sleep, which Serve doesn't join
		})
	})
}
