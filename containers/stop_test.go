//go:build linux && !race

package containers

import (
	"strings"
	"testing"
	"time"
)

// TestStop: docker stop ends the container by the workload's own end, within
// drainit's windows and not by the engine's KILL.
func TestStop(t *testing.T) {
	t.Parallel()
	needEngine(t)
	for _, c := range []struct {
		name   string
		env    map[string]string
		opts   []string // of docker stop
		argv   []string
		status int
		ended  string
		calm   bool // no warning
		least  time.Duration
		most   time.Duration
	}{
		{name: "default", argv: []string{"workload", "trap", "TERM=7@300ms"},
			status: 7, ended: "stop signal", calm: true, least: 300 * time.Millisecond, most: 9 * time.Second},
		{name: "with a timeout", opts: []string{"--time", "20"}, argv: []string{"workload", "trap", "TERM=0"},
			status: 0, ended: "stop signal", calm: true, most: 5 * time.Second},
		{name: "dies of the signal", argv: []string{"sleep", "1000"},
			status: 143, ended: "stop signal", calm: true, most: 5 * time.Second},
		// The grace period is assumed to be 10s. That is for the plan, and kills
		// nobody who has been given more.
		{name: "longer than assumed", opts: []string{"--time", "30"}, argv: []string{"workload", "trap", "TERM=3@10200ms"},
			status: 3, ended: "stop signal", least: 10200 * time.Millisecond, most: 20 * time.Second},
		{name: "declared", env: map[string]string{"GRACE_PERIOD": "5s"}, opts: []string{"--time", "5"},
			argv: []string{"workload", "trap", "TERM=4@1s"}, status: 4, ended: "stop signal", calm: true, least: time.Second, most: 4 * time.Second},
		// Killed from inside, before the engine would have done it.
		{name: "ignores TERM", env: map[string]string{"GRACE_PERIOD": "3s"}, opts: []string{"--time", "3"},
			argv: []string{"workload", "ignore", "TERM"}, status: 137, ended: "drainit, by KILL", least: 500 * time.Millisecond, most: 3 * time.Second},
		{name: "a child ignores TERM", env: map[string]string{"GRACE_PERIOD": "3s"}, opts: []string{"--time", "3"},
			argv:   []string{"workload", "daemon", "workload", "ignore", "TERM", "then", "trap", "TERM=6"},
			status: 6, ended: "stop signal", least: 500 * time.Millisecond, most: 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := spec{env: c.env, argv: c.argv}.run(t)
			b.wait(`msg="workload started"`)
			if c.argv[0] == "workload" {
				b.ready()
			}
			if strings.Contains(strings.Join(c.argv, " "), "daemon") {
				b.bothReady()
			}
			took := b.stop("15", c.opts...)
			b.want(c.status)
			b.inOrder(`msg="drain plan"`, `msg="workload started"`, `msg="signal received".* signal=TERM`,
				`msg="stage began".* stage=gate`, `msg="workload exited"`,
				`msg="shutdown complete".* ended_by="?`+c.ended+`"? exit_status=`+itoa(c.status))
			if c.calm {
				b.quiet()
			}
			if took < c.least || b.total() > c.most {
				t.Errorf("docker stop took %v, the shutdown %v; want %v to %v", took, b.total(), c.least, c.most)
			}
		})
	}
}

// TestStopSignals: an image that names its own stop signal is drained by it, and
// the workload gets the same.
func TestStopSignals(t *testing.T) {
	t.Parallel()
	needEngine(t)
	for _, c := range []struct{ stage, name, number string }{{"quit", "QUIT", "3"}, {"int", "INT", "2"}} {
		t.Run(c.stage, func(t *testing.T) {
			t.Parallel()
			b := spec{stage: c.stage}.run(t)
			b.ready()
			b.stop(c.number)
			b.want(0)
			b.inOrder(`msg="signal received".* signal=`+c.name, `stage=gate`, `msg="shutdown complete".* ended_by="stop signal"`)
			b.quiet()
			if !b.has("^got "+c.name) || b.has("^got TERM") {
				t.Errorf("the workload got another signal")
			}
		})
	}
}

// TestKillForwards: docker kill with a signal of another meaning reaches the
// workload and drains nothing.
func TestKillForwards(t *testing.T) {
	t.Parallel()
	needEngine(t)
	b := spec{argv: []string{"workload", "trap", "SIGRTMAX=5"}}.run(t)
	b.ready()
	for _, name := range []string{"HUP", "USR1", "WINCH", "RTMIN+3"} {
		dockerDo(t, "kill", "--signal", name, b.name)
	}
	for _, name := range []string{"HUP", "USR1", "WINCH", "RTMIN.3"} {
		b.wait("^got " + name + "$")
	}
	dockerDo(t, "kill", "--signal", "64", b.name)
	b.want(5)
	if b.has("signal received") {
		t.Error("the drain began")
	}
}

// TestAnnounce: while the drain is announced readiness fails and the workload
// serves; then the phases of the image run, and only then it gets its signal.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	needEngine(t)
	ports := freePorts(t, 2)
	b := spec{stage: "phases", port: ports[0], env: map[string]string{"ANNOUNCE_DELAY": "1s", "GRACE_PERIOD": "10s"},
		argv: []string{"workload", "serve", itoa(ports[1]), "TERM=0"}}.run(t)
	b.ready()
	eventually(t, "readiness", func() bool { s, body, _ := get(ports[0], "/readyz"); return s == 200 && body == `{"status":"ready"}` })
	stopped := make(chan time.Duration)
	go func() {
		from := time.Now()
		_ = docker("stop", "--time", "10", b.name).Run()
		stopped <- time.Since(from)
	}()
	eventually(t, "draining", func() bool {
		s, body, _ := get(ports[0], "/readyz")
		return s == 503 && body == `{"status":"draining"}`
	})
	if s, body, err := get(ports[1], "/"); s != 200 || body != "served" || b.has("^got") {
		t.Errorf("the workload answers %d %q (%v), and the log is\n%s", s, body, err, b.output())
	}
	if s, _, err := get(ports[0], "/livez"); s != 200 {
		t.Errorf("livez: %d, %v", s, err)
	}
	if took := <-stopped; took < time.Second {
		t.Errorf("stopped after %v", took)
	}
	b.want(0)
	b.gotOnly("15")
	b.quiet()
	b.inOrder(`stage=announce`, `stage=phases`, `phase=hand-over result=ok`, `phase=flush result=ok`, `stage=gate`, `msg="shutdown complete"`)
	for _, line := range []string{`phase=hand-over line="phase by 0, the workload is running"`, `phase=flush line="second phase, TERM"`} {
		b.wait(line)
	}
}

// TestStopDuringStart: while a lifecycle step starts a stop ends it, and the
// workload never runs.
func TestStopDuringStart(t *testing.T) {
	t.Parallel()
	needEngine(t)
	for name, c := range map[string]struct {
		number string
		status int
		env    map[string]string
	}{
		"INT":  {"2", 130, nil},
		"TERM": {"15", 143, map[string]string{"GRACE_PERIOD": "5s", "STEP_TIMEOUT": "2s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := spec{stage: "waits", env: c.env, opts: []string{"--stop-signal", name}}.run(t)
			b.wait("waiting")
			b.stop(c.number)
			b.want(c.status)
			if b.has("workload started") || !b.has(`msg="signal received".* signal=`+name) {
				t.Error("the workload was started, or the signal missed")
			}
		})
	}
}

// TestKilledByTheEngine: what a test that finds no second signal would miss: the
// engine's own KILL is told from ours.
func TestKilledByTheEngine(t *testing.T) {
	t.Parallel()
	needEngine(t)
	b := spec{argv: []string{"workload", "ignore", "TERM"}}.run(t)
	b.ready()
	dockerDo(t, "stop", "--time", "1", b.name)
	b.want(137)
	b.gotOnly("15", "9")
	if b.has("shutdown complete") {
		t.Error("ended in order")
	}
}
