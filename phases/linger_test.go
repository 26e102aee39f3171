package phases

import (
	"testing"
	"time"
)

// The last scrape.

// lingering ends a workload that has a linger of 3 s behind it.
func lingering(t *testing.T) *rig {
	t.Helper()
	in := long()
	in.Linger = set(3 * sec)
	r := running(t, withSteps(config(in), in, 1))
	r.all = nil
	r.do(exitLast)
	r.at(sec, companionEnds(0))
	return r
}

// The figures are final when the wait for it begins, and it ends the wait.
func TestLinger(t *testing.T) {
	r := lingering(t)
	r.at(2*sec, Event{Kind: Scraped})
	r.want("0s withdraw", "0s enter companions (10s)", "0s TERM to companion 1", "1s enter linger (3s)",
		"2s enter end", "2s exit 3, the workload's own")
	for i, e := range r.all {
		if e.Kind == Final && (r.all[i-1].Stage != Linger || e.Status != 3 || !e.Own) {
			t.Errorf("%s behind %s", describe(e), describe(r.all[i-1]))
		}
	}
	if n := r.count(Final); n != 1 {
		t.Errorf("final %d times", n)
	}
}

// Nobody comes.
func TestLingerInVain(t *testing.T) {
	r := lingering(t)
	r.pass(time.Minute)
	r.want("0s withdraw", "0s enter companions (10s)", "0s TERM to companion 1", "1s enter linger (3s)",
		"4s enter end", "4s exit 3, the workload's own")
}

// INT does not wait, another signal does not matter.
func TestInterruptLinger(t *testing.T) {
	r := lingering(t)
	r.at(1500*ms, sigTERM, sigTERM)
	r.at(2*sec, sigINT)
	r.want("0s withdraw", "0s enter companions (10s)", "0s TERM to companion 1", "1s enter linger (3s)",
		"1.5s say joined TERM", "1.5s say ignored TERM", "2s say hurried INT in linger", "2s enter end", "2s exit 3, the workload's own")
}

// A scrape before it is one like any other.
func TestScrapedBefore(t *testing.T) {
	in := long()
	in.Linger = set(3 * sec)
	r := running(t, config(in))
	if out := r.do(Event{Kind: Scraped}); out != nil || r.m.Stage() != Running {
		t.Errorf("%v in %v", out, r.m.Stage())
	}
}

// A deadline cuts it, be it there before or brought by a signal.
func TestLingerIsCut(t *testing.T) {
	in := long()
	in.Grace, in.Linger = set(2100*ms), set(5*sec)
	r := running(t, config(in))
	r.do(exitLast)
	r.at(sec, sigTERM) // until 2.1 s
	r.pass(time.Minute)
	r.want("0s withdraw", "0s enter linger (5s)", "1s say joined TERM", "2s enter end", "2s exit 3, the workload's own")
	r = running(t, config(in))
	r.do(sigTERM)
	r.do(exitLast)
	r.pass(time.Minute)
	r.want("0s withdraw", "0s enter announce (0s)", "0s enter gate (550ms)", "0s tell TERM", "0s enter linger (1s)",
		"1s enter end", "1s exit 3, the workload's own")
}

// What was final stays it: a workload that had survived its KILL ends in the linger.
func TestFinalIsFinal(t *testing.T) {
	in := long()
	in.Announce, in.DrainTimeout, in.Linger = set(0), set(sec), set(3*sec)
	r := running(t, config(in))
	r.do(sigTERM)
	r.at(3*sec, exitLast)
	r.pass(time.Minute)
	r.want("0s withdraw", "0s enter announce (0s)", "0s enter gate (1s)", "0s tell TERM", "1s say overran gate (1s)",
		"1s enter cancel (1s)", "1s kill rest", "2s say overran cancel (1s)", "2s enter linger (3s)", "5s enter end", "5s exit 137")
}
