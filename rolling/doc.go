// Package rolling shows, with real programs under real load, that replicas
// behind a balancer can be replaced one by one without losing a request.
//
// It has tests only. Three replicas, each under an init that is PID 1 of its own
// PID namespace, serve behind HAProxy, which may neither retry nor redispatch.
// While clients, with keep-alive connections and without, load them for at least
// 5,000 requests each, one replica after the other is replaced: the new one is
// started, the balancer's check takes it in, the old one gets its stop signal
// and ends by itself.
//
// The workloads are nginx, which can end gracefully, and Python's http.server,
// which can't: TERM ends it at once, whatever it was doing. Under drainit both
// lose nothing, since readiness fails for longer than the balancer needs to take
// notice (and its last requests to end), before the workload is told anything.
// Under an init that passes the signal on at once (tini) both lose requests;
// without that the tests would not prove anything.
//
// The balancer's configuration, testdata/haproxy.cfg, says at each line that
// matters why it is there.
package rolling
