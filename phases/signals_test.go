package phases

import (
	"testing"
	"time"
)

// Signals, before and in the shutdown.

// A stop signal drains, tells, and ends with the workload's status.
func TestStop(t *testing.T) {
	for _, sig := range []Event{sigTERM, sigINT} {
		in := roomy()
		in.Announce = set(0)
		r := running(t, config(in, named("a")...))
		r.at(sec, sig)
		r.at(3*sec, phaseEnds(0, true))
		r.at(4*sec, exitLast)
		name := describe(Effect{Kind: Tell, Signal: sig.Signal})
		r.want("1s withdraw", "1s enter announce (0s)", "1s enter phases (10s)", "1s start phase 1 (10s)",
			"3s phase 1 ok (2s)", "3s enter gate (20s)", "3s "+name,
			"4s enter end", "4s exit 3, the workload's own")
	}
}

// A second TERM is logged once and changes nothing.
func TestSecondTERM(t *testing.T) {
	r := running(t, config(roomy(), named("a", "b", "c")...))
	r.do(sigTERM)
	r.at(6*sec, sigTERM, sigTERM)
	r.at(7*sec, sigTERM, phaseEnds(0, true))
	r.at(8*sec, phaseEnds(1, true))
	r.at(9*sec, phaseEnds(2, true))
	r.at(10*sec, exitLast)
	if n := r.count(SayIgnored); n != 1 {
		t.Errorf("said %d times", n)
	}
	if n := r.count(StartPhase); n != 3 {
		t.Errorf("%d phases", n)
	}
}

// INT in the announce delay ends it; no phase runs.
func TestInterruptAnnounce(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.do(sigTERM)
	r.at(2*sec, sigINT)
	r.want("0s withdraw", "0s enter announce (5s)",
		"2s say hurried INT in announce", "2s phase 1 skipped (0s)", "2s enter gate (20s)", "2s tell TERM")
}

// INT in phase 1 of 3: it gets its stop and a second; the others do not run.
func TestInterruptPhase(t *testing.T) {
	for _, ends := range []bool{true, false} {
		r := running(t, config(roomy(), named("a", "b", "c")...))
		r.do(sigTERM)
		r.at(6*sec, sigINT)
		want := []string{"0s withdraw", "0s enter announce (5s)", "5s enter phases (10s)", "5s start phase 1 (10s)",
			"6s say hurried INT in phases", "6s TERM to phase 1", "6s phase 2 skipped (0s)", "6s phase 3 skipped (0s)"}
		if ends {
			r.at(6500*ms, phaseEnds(0, true))
			r.want(append(want, "6.5s phase 1 interrupted (1.5s)", "6.5s enter gate (20s)", "6.5s tell TERM")...)
		} else {
			r.at(8 * sec)
			r.want(append(want, "7s KILL to phase 1", "7s phase 1 killed (2s)", "7s enter gate (20s)", "7s tell TERM")...)
		}
	}
}

// A phase that had overrun before the INT keeps that name and its second.
func TestInterruptOverrun(t *testing.T) {
	r := running(t, config(roomy(), Phase{"a", sec}, Phase{"b", 0}))
	r.do(sigTERM)
	r.at(6500*ms, sigINT)
	r.at(6600*ms, phaseEnds(0, true))
	r.want("0s withdraw", "0s enter announce (5s)", "5s enter phases (10s)", "5s start phase 1 (1s)",
		"6s TERM to phase 1", "6.5s say hurried INT in phases", "6.5s phase 2 skipped (0s)",
		"6.6s phase 1 overran (1.6s)", "6.6s enter gate (20s)", "6.6s tell TERM")
}

// A phase that fails or can't be started changes no status.
func TestPhaseFails(t *testing.T) {
	r := running(t, config(roomy(), named("a", "b")...))
	r.do(sigTERM)
	r.at(6*sec, phaseEnds(0, false))
	r.at(7*sec, phaseRefused(1))
	r.at(8*sec, exitLast)
	r.want("0s withdraw", "0s enter announce (5s)", "5s enter phases (10s)", "5s start phase 1 (10s)",
		"6s phase 1 failed (1s)", "6s start phase 2 (9s)", "7s phase 2 failed (1s)",
		"7s enter gate (20s)", "7s tell TERM", "8s enter end", "8s exit 3, the workload's own")
}

// The workload ends by itself during the announcement.
func TestExitDuringAnnounce(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.do(sigTERM)
	r.at(2*sec, exitLast)
	r.at(3*sec, phaseEnds(0, true))
	r.want("0s withdraw", "0s enter announce (5s)", "2s enter phases (10s)", "2s start phase 1 (10s)",
		"3s phase 1 ok (1s)", "3s enter end", "3s exit 3, the workload's own")
}

// A stop signal between fork and the pid: the workload is told once it runs.
func TestStopDuringFork(t *testing.T) {
	r := newRig(t, config(roomy(), named("a")...))
	r.do(sigTERM)
	r.at(sec, started)
	r.at(2*sec, phaseEnds(0, true))
	r.at(3*sec, Event{Kind: Exited, Status: 143, Last: true})
	r.want("0s withdraw", "1s enter phases (10s)", "1s start phase 1 (10s)", "2s phase 1 ok (1s)",
		"2s enter gate (20s)", "2s tell TERM", "3s enter end", "3s exit 143, the workload's own")
}

// A fork that never answers keeps nothing: there is no workload yet whose life
// an assumed grace period would have to spare.
func TestForkHangs(t *testing.T) {
	short := roomy()
	short.Grace, short.DrainTimeout = set(5*sec), set(0)
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"a long grace":            {config(roomy()), "10s"},
		"a short one, no gate":    {config(short), "3s"},
		"an assumed grace period": {config(assumed()), "10s"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.config)
			r.do(sigTERM)
			r.pass(time.Minute)
			want := []string{"0s withdraw"}
			if name == "an assumed grace period" {
				want = append(want, "9s say assumed grace passed")
			}
			r.want(append(want, c.want+" say overran starting ("+c.want+")", c.want+" enter end", c.want+" exit 143")...)
		})
	}
}

// INT while the fork is under way leaves it one second more, and no phase.
func TestInterruptFork(t *testing.T) {
	r := newRig(t, config(assumed(), named("a")...))
	r.do(sigTERM)
	r.at(sec, sigINT)
	r.at(1500*ms, started)
	r.want("0s withdraw", "1s say hurried INT in starting", "1s phase 1 skipped (0s)",
		"1.5s enter gate (no end)", "1.5s tell TERM")
	r = newRig(t, config(assumed()))
	r.do(sigINT)
	r.at(sec, sigINT)
	r.pass(time.Minute)
	r.want("0s withdraw", "1s say hurried INT in starting",
		"2s say overran starting (2s)", "2s enter end", "2s exit 130")
}

// INTs within 500 ms of the one that counted are the same one. Counting
// from the latest instead, a key that is held down would never be heard.
func TestDebounce(t *testing.T) {
	for _, c := range []struct {
		times []time.Duration
		want  Stage
	}{
		{[]time.Duration{0, 50 * ms}, Announce},
		{[]time.Duration{0, 499 * ms}, Announce},
		{[]time.Duration{0, 500 * ms}, Gate},
		{[]time.Duration{0, 300 * ms, 600 * ms}, Gate},
		{[]time.Duration{0, 300 * ms, 600 * ms, 900 * ms}, Gate},
		{[]time.Duration{0, 300 * ms, 600 * ms, 900 * ms, 1200 * ms}, Cancel},
	} {
		r := running(t, config(roomy(), named("a")...))
		for _, at := range c.times {
			r.at(at, sigINT)
		}
		if got := r.m.Stage(); got != c.want {
			t.Errorf("INT at %v: %v, want %v", c.times, got, c.want)
		}
	}
}

// INT right behind TERM is another signal, and hurries.
func TestInterruptAfterTERM(t *testing.T) {
	r := running(t, config(roomy()))
	r.do(sigTERM)
	r.at(100*ms, sigINT)
	if r.m.Stage() != Gate {
		t.Errorf("stage %v", r.m.Stage())
	}
}

// INT in the gate is KILL at once; what is killed has been told.
func TestInterruptGate(t *testing.T) {
	r := running(t, config(assumed()))
	r.do(sigTERM)
	r.at(2*sec, sigINT)
	r.at(2100*ms, Event{Kind: Exited, Status: 137, Last: true})
	r.want("0s withdraw", "0s enter announce (0s)", "0s enter gate (no end)", "0s tell TERM",
		"2s say hurried INT in gate", "2s enter cancel (1s)", "2s kill rest",
		"2.1s enter end", "2.1s exit 137")
}

// The stop signal is the one that began the drain, unless one is named.
func TestStopSignal(t *testing.T) {
	for _, c := range []struct{ named, first, want int }{
		{0, term, term}, {0, intr, intr}, {0, quit, quit}, {quit, term, quit}, {quit, quit, quit},
	} {
		conf := config(assumed())
		conf.StopSignal = c.named
		r := running(t, conf)
		r.do(Event{Kind: Stop, Signal: c.first, Interrupt: c.first == intr})
		if last := r.all[len(r.all)-1]; last.Kind != Tell || last.Signal != c.want {
			t.Errorf("named %d, first %d: %s", c.named, c.first, describe(last))
		}
	}
}

// A stop signal of the workload's own making is the named one, else TERM.
func TestRestIsTold(t *testing.T) {
	for named, want := range map[int]int{0: term, quit: quit} {
		conf := config(assumed())
		conf.StopSignal = named
		r := running(t, conf)
		r.do(exitSome)
		if e := r.all[3]; e.Kind != TellRest || e.Signal != want {
			t.Errorf("%s", describe(e))
		}
	}
}

// Signals that the first one is not: each is said once.
func TestOtherDrainSignals(t *testing.T) {
	r := running(t, config(assumed()))
	other := Event{Kind: Stop, Signal: quit}
	r.do(sigTERM, other, other, sigTERM, sigTERM, other)
	if n := r.count(SayIgnored); n != 2 {
		t.Errorf("said %d times", n)
	}
}
