package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestVerbs(t *testing.T) {
	d := func(d time.Duration) *time.Duration { return &d }
	type vars map[string]string
	for _, c := range []struct {
		env  vars
		args string
		want Result
	}{
		{nil, "announce", Result{Client: &Client{Verb: "announce"}}},
		{nil, "announce --", Result{Client: &Client{Verb: "announce"}}},
		{nil, "announce --control @x", Result{Client: &Client{Verb: "announce", Control: "@x"}}},
		{nil, "undrain --control=/run//x", Result{Client: &Client{Verb: "undrain", Control: "/run/x"}}},
		{vars{"DRAINIT_CONTROL": "@y"}, "undrain", Result{Client: &Client{Verb: "undrain", Control: "@y"}}},
		{vars{"DRAINIT_CONTROL": "@y"}, "undrain --control @x", Result{Client: &Client{Verb: "undrain", Control: "@x"}}},
		{vars{"DRAINIT_CONTROL": "none"}, "undrain --control @x", Result{Client: &Client{Verb: "undrain", Control: "@x"}}},
		// Told by the init itself, the socket counts more than what that init was told.
		{vars{"DRAINIT_CONTROL": "none", "DRAINIT_SOCKET": "@z"}, "undrain", Result{Client: &Client{Verb: "undrain"}}},
		{vars{"DRAINIT_CONTROL": "@y", "DRAINIT_SOCKET": "@z"}, "undrain --control=@x", Result{Client: &Client{Verb: "undrain", Control: "@x"}}},
		{nil, "drain", Result{Client: &Client{Verb: "drain"}}},
		{nil, "drain --budget 5 --announce-delay=0", Result{Client: &Client{Verb: "drain", Budget: d(5 * time.Second), AnnounceDelay: d(0)}}},
		{vars{"DRAINIT_BUDGET": "1m", "DRAINIT_ANNOUNCE_DELAY": "3"}, "drain", Result{Client: &Client{Verb: "drain", Budget: d(time.Minute), AnnounceDelay: d(3 * time.Second)}}},
		{vars{"DRAINIT_BUDGET": "1m", "DRAINIT_JSON": "bad"}, "drain --budget 2m", Result{Client: &Client{Verb: "drain", Budget: d(2 * time.Minute)}}},
		{vars{"DRAINIT_BUDGET": "bad"}, "status", Result{Client: &Client{Verb: "status"}}},
		{nil, "status --json --ready", Result{Client: &Client{Verb: "status", JSON: true, Ready: true}}},
		{vars{"DRAINIT_JSON": "1", "DRAINIT_READY": "yes"}, "status --json=no", Result{Client: &Client{Verb: "status", Ready: true}}},
		{nil, "spread -- redis-cli {}", Result{Spread: &Spread{Command: []string{"redis-cli", "{}"}}}},
		{nil, "spread --over 0 --jitter -- a -- b", Result{Spread: &Spread{OverSet: true, Jitter: true, Command: []string{"a", "--", "b"}}}},
		{vars{"DRAINIT_OVER": "2", "DRAINIT_JITTER": "true"}, "spread -- a", Result{Spread: &Spread{Over: 2 * time.Second, OverSet: true, Jitter: true, Command: []string{"a"}}}},
		{nil, "version", Result{Version: true}},
		{nil, "version --", Result{Version: true}},
		{nil, "budget --version", Result{Version: true}},
	} {
		got, help, err := ask(c.env, strings.Fields(c.args)...)
		if err != nil || help != "" || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s with %q: %+v, %v, help %q; want %+v", c.args, c.env, got, err, help, c.want)
		}
	}
}

// What stands behind "--" is a command, whatever it is called.
func TestVerbsAreNoCommands(t *testing.T) {
	for _, v := range verbs() {
		r, _, err := ask(nil, "--", v.name, "--help")
		if err != nil || r.Run == nil || !slices.Equal(r.Run.Command, []string{v.name, "--help"}) {
			t.Errorf("%s: %+v, %v", v.name, r, err)
		}
		if _, ok := grammars()[v.name]; !ok && v.name != "spread" {
			t.Errorf("%s is in no test", v.name)
		}
	}
}

func TestVerbsRefuse(t *testing.T) {
	for _, c := range []struct {
		variable, args, text, hint string
	}{
		{"", "announce now", "unexpected argument now", "drainit announce --help"},
		{"", "announce --budget 5", "unknown flag --budget", "drainit announce --help"},
		{"", "undrain -- x", `undrain takes no command, and "x" stands behind --`, "drainit undrain"},
		{"", "version -- x", `version takes no command, and "x" stands`, "drainit version"},
		{"", "version x", "unexpected argument x", "drainit version --help"},
		{"", "drain --budget", "--budget: no value behind it", "--budget=D"},
		{"", "drain --budget=-1", `--budget "-1": negative`, "500ms"},
		{"DRAINIT_BUDGET=x", "drain", `DRAINIT_BUDGET "x": not a duration`, "500ms"},
		{"DRAINIT_ANNOUNCE_DELAY=x", "drain", `DRAINIT_ANNOUNCE_DELAY "x": not a duration`, "500ms"},
		{"", "drain --grace-period 5", "unknown flag --grace-period", "drainit drain --help"},
		{"", "status --json=maybe", `--json "maybe": neither true nor false`, "true, 1, yes"},
		{"DRAINIT_READY=maybe", "status", `DRAINIT_READY "maybe"`, "true"},
		{"", "status --control none", `--control "none": an init without`, "@NAME"},
		{"DRAINIT_CONTROL=none", "drain", `DRAINIT_CONTROL "none": an init without`, "@NAME"},
		{"DRAINIT_CONTROL=x", "announce", `DRAINIT_CONTROL "x": neither`, "absolute path"},
		{"", "status --control=", `--control "": neither`, "absolute path"},
		{"", "spread", "no command to run", "drainit spread [flags] -- COMMAND"},
		{"", "spread --", "no command to run", "drainit spread [flags] -- COMMAND"},
		{"", "spread redis-cli", "unexpected argument redis-cli", "stands behind --: drainit spread [flags] -- COMMAND"},
		{"", "spread x -- redis-cli", "unexpected argument x", "drainit spread --help"},
		{"", "spread --over x -- a", `--over "x": not a duration`, "500ms"},
		{"", "budget app", "unexpected argument app", "stands behind --: drainit budget [flags] [-- COMMAND"},
		{"", "budget --grace-period", "--grace-period: no value", "--grace-period=D"},
		{"", "budget --grace-period x", `--grace-period "x"`, "500ms"},
		{"DRAINIT_JSON=x", "budget", `DRAINIT_JSON "x"`, "true"},
		{"DRAINIT_PROBE_ADDR=x", "budget", `DRAINIT_PROBE_ADDR "x"`, "none"},
		{"", "lead -- x", `unknown verb "lead"`, "the verbs are"},
	} {
		name, value, _ := strings.Cut(c.variable, "=")
		e := refused(t, map[string]string{name: value}, strings.Fields(c.args)...)
		if !strings.Contains(e.Text, c.text) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s with %s: %q, hint %q; want %q, %q", c.args, c.variable, e.Text, e.Hint, c.text, c.hint)
		}
	}
}

// Each verb has its own help, which is given whatever else is wrong.
func TestVerbHelp(t *testing.T) {
	for _, v := range verbs() {
		grammar := grammars()[v.name]
		if grammar == nil {
			grammar = &spreadFlags{}
		}
		bad := map[string]string{"DRAINIT_CONTROL": "bad", "DRAINIT_GRACE_PERIOD": "bad", "DRAINIT_JSON": "bad", "DRAINIT_OVER": "bad"}
		r, help, err := ask(bad, v.name, "--help")
		if !errors.Is(err, ErrHelp) || r != (Result{}) {
			t.Errorf("%s: %+v, %v", v.name, r, err)
		}
		if !strings.HasPrefix(help, "Usage: "+v.usage+"\n\n") || !strings.Contains(strings.Join(strings.Fields(help), " "), v.about) {
			t.Errorf("%s: %s", v.name, help)
		}
		for flag := range flagsOf(&budgetFlags{}) {
			_, own := flagsOf(grammar)[flag]
			if told := strings.Contains(help, "--"+flag+"=") || strings.Contains(help, "--"+flag+" "); own != told {
				t.Errorf("%s: its help tells of --%s: %v\n%s", v.name, flag, told, help)
			}
		}
		for line := range strings.Lines(help) {
			if len(line) > 81 {
				t.Errorf("%s: %d columns: %s", v.name, len(line), line)
			}
		}
	}
}

// The plan is that of the main job with the same flags and variables.
func TestBudgetIsTheMainJobs(t *testing.T) {
	env := map[string]string{"DRAINIT_DRAIN_BUDGET": "7", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
	flags := []string{"--grace-period=60", "--step-timeout", "2", "--strict-budget"}
	main := accepted(t, env, flags...)
	for _, c := range []struct {
		args []string
		json bool
	}{
		{slices.Concat([]string{"budget"}, flags, []string{"--", "/bin/app", "-x"}), false},
		{slices.Concat([]string{"budget", "--json"}, flags, []string{"--", "/bin/app", "-x"}), true},
	} {
		r, _, err := ask(env, c.args...)
		if err != nil || r.BudgetJSON != c.json || !reflect.DeepEqual(r.Budget, main) {
			t.Errorf("%q: %+v, %v; want %+v", c.args, r.Budget, err, main)
		}
	}
	r, _, err := ask(env, append([]string{"budget"}, flags...)...)
	if err != nil || r.Budget.Budget != main.Budget || r.Budget.Service != "" || len(r.Budget.Command) != 0 {
		t.Errorf("without a command: %+v, %v", r.Budget, err)
	}
}

// Beside the init, in its container, the plan is that one's: its platform is
// known by its being PID 1, and its hooks count.
func TestBudgetInTheContainer(t *testing.T) {
	for _, same := range []bool{true, false} {
		r, err := Parse(World{
			Args: []string{"budget"}, PID: 7, SameInit: func() bool { return same },
			Env: func(name string) (string, bool) { return "@drainit/1", name == "DRAINIT_SOCKET" },
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]string{true: "docker", false: "none"}[same]; r.Budget.Platform.Name != want {
			t.Errorf("platform %s, want %s", r.Budget.Platform.Name, want)
		}
		if r.Budget.Nested || r.Budget.ConfigDir != "/etc/drainit" {
			t.Errorf("%+v", r.Budget)
		}
	}
	// The main job itself does not ask who PID 1 is.
	_, err := Parse(World{
		Args: []string{"--", "app"}, PID: 7, SameInit: func() bool { t.Error("asked"); return true },
		Env: func(string) (string, bool) { return "", false },
	})
	if err != nil {
		t.Error(err)
	}
}
