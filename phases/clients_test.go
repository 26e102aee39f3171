package phases

import (
	"testing"
	"time"

	"drainit/budget"
)

// What clients ask for: announce, drain, undrain.

func asks(n uint64) Event { return client(AskDrain, n) }

// asksFor is a drain with figures of its own.
func asksFor(n uint64, within, delay budget.Value) Event {
	return Event{Kind: AskDrain, Client: n, Budget: within, Delay: delay}
}

// announce withdraws readiness and no more; again, it changes nothing.
func TestAnnounce(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.do(client(AskAnnounce, 1))
	r.at(time.Hour, client(AskAnnounce, 2))
	r.want("0s withdraw", "0s reply done to 1", "1h0m0s reply done to 2")
	if r.m.Stage() != Running {
		t.Errorf("in %v", r.m.Stage())
	}
}

// During the start it is remembered: readiness never comes.
func TestAnnounceWhileStarting(t *testing.T) {
	r := newRig(t, stepped(long(), nil, 1))
	r.do(client(AskAnnounce, 1))
	r.at(sec, stepEnds(0, true))
	r.at(2*sec, started)
	r.at(3*sec, client(AskUndrain, 2))
	r.want("0s start step 1 (no end)", "0s reply done to 1", "1s step 1 started (1s)", "1s start workload",
		"2s enter running", "2s withdraw", "3s ready", "3s enter running", "3s reply done to 2")
}

// The announce delay counts from when readiness was first withdrawn.
func TestAnnouncedBefore(t *testing.T) {
	for ago, want := range map[time.Duration]string{10 * sec: "0s", 2 * sec: "3s"} {
		r := running(t, config(roomy(), named("a")...))
		r.do(client(AskAnnounce, 1))
		r.at(ago, sigTERM)
		if got := r.lines[2]; got != ago.String()+" enter announce ("+want+")" {
			t.Errorf("%v: %s", ago, got)
		}
	}
}

// A drain is the first two stages; then the workload goes on until the stop
// signal, which has nothing to announce and no phase to run, and a full grace
// period where it comes late.
func TestDrain(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.at(sec, asks(1))
	r.at(8*sec, phaseEnds(0, true))
	r.at(9*sec, asks(2))
	r.at(10*time.Minute, sigTERM)
	r.pass(time.Minute)
	r.want("1s withdraw", "1s enter announce (5s)", "6s enter phases (10s)", "6s start phase 1 (10s)",
		"8s phase 1 ok (2s)", "8s answer done", "8s enter drained (no end)", "9s reply done to 2",
		"10m0s enter gate (20s)", "10m0s tell TERM",
		"10m20s say overran gate (20s)", "10m20s enter cancel (1s)", "10m20s kill rest",
		"10m21s say overran cancel (1s)", "10m21s enter end", "10m21s exit 137")
	if at, ok := r.m.Hard(); !ok || at.Sub(r.start) != 10*time.Minute+59*sec {
		t.Errorf("the deadline is %v", at.Sub(r.start))
	}
}

// Its client learns of what went wrong, and so does who asks again.
func TestDrainIncomplete(t *testing.T) {
	r := running(t, config(roomy(), named("a", "b")...))
	r.do(asks(1))
	r.at(6*sec, phaseEnds(0, false))
	r.at(7*sec, phaseEnds(1, true))
	r.do(asks(2))
	r.want("0s withdraw", "0s enter announce (5s)", "5s enter phases (10s)", "5s start phase 1 (10s)", "6s phase 1 failed (1s)",
		"6s start phase 2 (9s)", "7s phase 2 ok (1s)", "7s answer incomplete", "7s enter drained (no end)", "7s reply incomplete to 2")
}

// Without phases the drain is the announcement.
func TestDrainWithoutPhases(t *testing.T) {
	r := running(t, config(roomy()))
	r.do(asks(1))
	r.at(6*sec, client(AskUndrain, 2))
	r.at(7*sec, sigTERM)
	r.want("0s withdraw", "0s enter announce (5s)", "5s answer done", "5s enter drained (no end)",
		"6s ready", "6s enter running", "6s reply done to 2", "7s withdraw", "7s enter announce (5s)")
}

// Callers at the same time share one drain, and both see its end.
func TestDrainShared(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.do(asks(1))
	r.at(sec, asks(2))
	r.at(6*sec, asksFor(3, set(sec), set(0)))
	r.at(7*sec, phaseEnds(0, true))
	r.want("0s withdraw", "0s enter announce (5s)", "1s share with 2", "5s enter phases (10s)", "5s start phase 1 (10s)",
		"6s share with 3", "7s phase 1 ok (2s)", "7s answer done", "7s enter drained (no end)")
}

// One may bring figures of its own.
func TestDrainWithFigures(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.do(asksFor(1, set(time.Minute), set(2*sec)))
	r.at(3*sec, client(ClientLeft, 1)) // a phase has begun
	r.pass(2 * time.Minute)
	r.want("0s withdraw", "0s enter announce (2s)", "2s enter phases (1m0s)", "2s start phase 1 (1m0s)",
		"1m2s TERM to phase 1", "1m3s KILL to phase 1", "1m3s phase 1 killed (1m1s)", "1m3s enter drained (no end)")
}

// A drain whose last client has left before the first phase is called off, and the
// figures go with it; the phases run in the shutdown then.
func TestDrainCalledOff(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.do(asksFor(1, set(time.Minute), set(4*sec)))
	r.at(sec, asks(2))
	r.at(2*sec, client(ClientLeft, 1))
	r.at(3*sec, client(ClientLeft, 2))
	r.at(time.Minute, sigTERM)
	r.pass(5 * sec)
	r.want("0s withdraw", "0s enter announce (4s)", "1s share with 2", "3s say cancelled", "3s ready", "3s enter running",
		"1m0s withdraw", "1m0s enter announce (5s)", "1m5s enter phases (10s)", "1m5s start phase 1 (10s)")
	if at, _ := r.m.Hard(); at.Sub(r.start) != time.Minute+59*sec {
		t.Errorf("the deadline is %v", at.Sub(r.start))
	}
}

// One leaves, the other waits: it goes on. Both gone after the first phase has
// begun: it goes on, too, and its phases are not run again.
func TestDrainGoesOn(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.do(asks(1), asks(2))
	r.at(sec, client(ClientLeft, 2))
	r.at(6*sec, client(ClientLeft, 1))
	r.at(8*sec, phaseEnds(0, true))
	r.at(time.Hour, sigTERM)
	r.want("0s withdraw", "0s enter announce (5s)", "0s share with 2", "5s enter phases (10s)", "5s start phase 1 (10s)",
		"8s phase 1 ok (3s)", "8s enter drained (no end)", "1h0m0s enter gate (20s)", "1h0m0s tell TERM")
}

// Readiness stays withdrawn where it was announced, before the drain or in it.
func TestCalledOffStaysAnnounced(t *testing.T) {
	for _, order := range [][]Event{{client(AskAnnounce, 1), asks(2)}, {asks(2), client(AskAnnounce, 1)}} {
		r := running(t, config(roomy(), named("a")...))
		r.do(order...)
		r.at(sec, client(ClientLeft, 2))
		if r.m.Stage() != Running || r.count(BeReady) != 1 {
			t.Fatalf("in %v, ready %d times", r.m.Stage(), r.count(BeReady))
		}
		if r.at(2*sec, client(AskUndrain, 3)); r.count(BeReady) != 2 {
			t.Errorf("undrain: ready %d times", r.count(BeReady))
		}
	}
}

// undrain calls off a drain in its announcement, with those who wait for it.
func TestUndrain(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.do(client(AskUndrain, 1))
	r.at(sec, asks(2))
	r.at(2*sec, client(AskUndrain, 3))
	r.at(3*sec, client(AskAnnounce, 4))
	r.at(4*sec, client(AskUndrain, 5))
	r.want("0s reply done to 1", "1s withdraw", "1s enter announce (5s)", "2s say cancelled", "2s ready", "2s enter running",
		"2s reply done to 3", "3s withdraw", "3s reply done to 4", "4s ready", "4s enter running", "4s reply done to 5")
}

// It is refused once a phase has begun, or a stop signal has come, or the workload
// is over.
func TestUndrainRefused(t *testing.T) {
	phase := config(roomy(), named("a")...)
	steps := stepped(long(), nil, 1, 1)
	failed := func(r *rig) { r.do(stepEnds(0, false)) }
	for name, c := range map[string]struct {
		config Config
		reach  func(*rig)
	}{
		"starting, TERM":  {phase, func(r *rig) { r.do(sigTERM) }},
		"starting, fails": {steps, failed},
		"phases":          {phase, func(r *rig) { r.do(started, asks(1)); r.pass(6 * sec) }},
		"drained":         {phase, func(r *rig) { r.do(started, asks(1)); r.pass(6 * sec); r.do(phaseEnds(0, true)) }},
		"drained, TERM":   {config(roomy()), func(r *rig) { r.do(started, asks(1)); r.pass(6 * sec); r.do(sigTERM) }},
		"announce, TERM":  {phase, func(r *rig) { r.do(started, asks(1), sigTERM) }},
		"TERM":            {phase, func(r *rig) { r.do(started, sigTERM) }},
		"exited":          {config(roomy()), func(r *rig) { r.do(started, exitSome) }},
		"interrupted":     {phase, func(r *rig) { r.do(started, sigTERM); r.pass(sec); r.do(sigINT) }},
	} {
		r := newRig(t, c.config)
		c.reach(r)
		stage := r.m.Stage()
		r.lines = nil
		if r.do(client(AskUndrain, 9)); len(r.lines) != 1 || r.m.Stage() != stage || r.all[len(r.all)-1].Outcome != Refused {
			t.Errorf("%s: %q, in %v", name, r.lines, r.m.Stage())
		}
	}
}

// A drain that is asked for during the start begins when the workload runs,
// without readiness ever being given.
func TestDrainWhileStarting(t *testing.T) {
	r := newRig(t, stepped(long(), named("a"), 1))
	r.do(asksFor(1, set(3*sec), set(sec)))
	r.do(asks(2))
	r.at(sec, stepEnds(0, true))
	r.at(2*sec, started)
	r.at(4*sec, phaseEnds(0, true))
	r.want("0s start step 1 (no end)", "0s share with 2", "1s step 1 started (1s)", "1s start workload", "2s enter running",
		"2s withdraw", "2s enter announce (1s)", "3s enter phases (3s)", "3s start phase 1 (3s)",
		"4s phase 1 ok (1s)", "4s answer done", "4s enter drained (no end)")
}

// Called off during the start, it never was.
func TestDrainWhileStartingCalledOff(t *testing.T) {
	for name, c := range map[string]struct {
		event Event
		want  []string
	}{
		"left":    {client(ClientLeft, 1), nil},
		"undrain": {client(AskUndrain, 2), []string{"1s say cancelled", "1s reply done to 2"}},
	} {
		r := newRig(t, config(roomy(), named("a")...))
		r.do(asksFor(1, set(3*sec), set(sec)))
		r.at(sec, c.event)
		r.at(2*sec, started)
		r.at(3*sec, sigTERM)
		t.Log(name)
		r.want(append(c.want, "2s ready", "2s enter running", "3s withdraw", "3s enter announce (5s)")...)
	}
}

// The start fails: whoever waits is let go.
func TestDrainOfAFailedStart(t *testing.T) {
	r := newRig(t, stepped(long(), named("a"), 1))
	r.do(asks(1))
	r.at(sec, stepEnds(0, false))
	r.want("0s start step 1 (no end)", "1s step 1 did not start: failed (1s)", "1s withdraw", "1s answer incomplete",
		"1s enter end", "1s exit 125")
}

// Once it is too late for a drain, there is an answer.
func TestDrainTooLate(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.do(sigTERM)
	r.at(sec, sigINT)
	r.at(2*sec, asks(1))
	if e := r.all[len(r.all)-1]; e.Kind != Reply || e.Outcome != Incomplete {
		t.Errorf("%s", describe(e))
	}
}
