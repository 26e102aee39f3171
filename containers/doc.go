// Package containers shows drainit as what it is for: the first process of real
// containers, made by Docker Engine and by runc from images that hold nothing
// but static programs.
//
// It has tests only. They start an engine of their own, with its socket and all
// of its files in a temporary directory, and need no network. The engine, runc
// and every container live in one PID and mount namespace, which a process
// beside the tests keeps (keeper_test.go). It ends with them, however they end:
// no container, mount or cgroup is left behind.
//
// The workload in the containers is the test binary itself, under the name
// workload; a shell, where one is needed, is busybox.
//
// The tests are not built under the race detector. Everything that they test
// runs in programs which are built without it, so that all they would do is to
// take their time once more.
package containers
