//go:build linux

package rolling

import (
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/template"
	"time"
)

// balancer is a running HAProxy.
type balancer struct {
	*process
	addr   string // where the clients go
	socket string
}

// startBalancer gives HAProxy a listener that is there already: its port can't
// be taken, and no client is refused while it starts.
func startBalancer(dir string, probed bool, servers []*replica) (*balancer, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b := &balancer{addr: l.Addr().String(), socket: filepath.Join(dir, "haproxy.sock")}
	conf := filepath.Join(dir, "haproxy.cfg")
	err = fill("testdata/haproxy.cfg", conf, map[string]any{
		"Socket": b.socket, "ListenerFD": 3, "Servers": servers, "Probe": probed,
		"Interval": checkInterval, "Fall": checkFall, "CheckTimeout": checkTimeout,
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("haproxy", "-db", "-f", conf)
	cmd.ExtraFiles = []*os.File{file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	b.process, err = start(cmd, filepath.Join(dir, "haproxy.log"))
	return b, err
}

// fill makes the file to from a template.
func fill(from, to string, data any) error {
	tmpl, err := template.ParseFiles(from)
	if err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	if err := tmpl.Execute(f, data); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// server is a line of `show stat`, by field name.
type server map[string]string

// up: it gets requests, and a check has said so; a server is up until its first.
func (s server) up() bool { return s["status"] == "UP" && s["check_status"] == "L7OK" }

// down: it gets none.
func (s server) down() bool { return s["status"] == "DOWN" }

// servers asks the balancer, by its admin socket, for its servers by name.
func (b *balancer) servers() (map[string]server, error) {
	text, err := b.ask("show stat")
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "# "))).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("show stat: %w", err)
	}
	found := map[string]server{}
	for i, row := range rows {
		if i == 0 || row[0] != "replicas" || row[1] == "BACKEND" {
			continue
		}
		s := server{}
		for j, field := range rows[0] {
			s[field] = row[j]
		}
		found[row[1]] = s
	}
	return found, nil
}

func (b *balancer) ask(command string) (string, error) {
	conn, err := net.DialTimeout("unix", b.socket, patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, command+"\n"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}
