package main

import (
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The programs of the tests are the test binary itself, under these names in
// PATH: the init as users get it, the stage that makes a container around it,
// and the actor that plays workloads and hooks.
func TestMain(m *testing.M) {
	testscript.Main(reachable{m}, map[string]func(){
		"drainit": main,
		"stage":   stageMain,
		"actor":   actorMain,
	})
}

// reachable lets any user into the directory of the programs, since some tests
// run them as another one.
type reachable struct{ *testing.M }

func (m reachable) Run() int {
	sealDescriptors()
	takeDefaults()
	if raceEnabled { // else every program sleeps for a second at its end
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	bin, _, _ := strings.Cut(os.Getenv("PATH"), ":")
	_ = os.Chmod(filepath.Dir(bin), 0o711)
	return m.M.Run()
}

// sealDescriptors keeps what the tests were started with from the programs.
func sealDescriptors() {
	for fd := 3; fd < 1024; fd++ {
		syscall.CloseOnExec(fd)
	}
}

// takeDefaults keeps from the programs that the tests were started with signals
// ignored, as nohup and the background jobs of scripts are: the programs begin
// with the default for what is subscribed to here.
func takeDefaults() {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

var update = flag.Bool("update", false, "rewrite the golden parts of the scripts")

// TestScripts runs testdata/script against the real binary.
func TestScripts(t *testing.T) {
	needPID1(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Cmds:                scriptCommands,
		Setup:               setUpScript,
	})
}
