package child

import "time"

// reader reads what /proc tells of processes, on goroutines of its own, since
// that may hang: the kernel takes locks that a process holds which hangs itself
// in mmap(2) or execve(2) on a file system that does not answer (mmap_lock,
// exec_update_lock). When no answer comes, the goroutine is left behind with that
// process, and another one goes on.
type reader[K comparable, V any] struct {
	stuck   map[K]bool // left behind with these, which are not asked for again before they answer
	answers chan answer[K, V]
}

type answer[K comparable, V any] struct {
	key   K
	value V
}

const (
	// patience is how long reading one process may take.
	readPatience = 100 * time.Millisecond
	// maxStuck bounds the goroutines that are left behind: each has a thread. With
	// so many nothing is read any more.
	maxStuck = 3
	// atOnce is how many answers wait for the owner, who has to be woken for
	// them, those of the goroutines that were left behind among them.
	atOnce = 64
)

func newReader[K comparable, V any]() reader[K, V] {
	return reader[K, V]{stuck: map[K]bool{}, answers: make(chan answer[K, V], atOnce)}
}

// each calls take with the answer about every key, in order, but for those that
// have been stuck before. begin returns what a goroutine reads with. It returns by
// until, the zero time being never, and how many answers are missing: since that
// came, or something has got stuck.
func (r *reader[K, V]) each(keys []K, until time.Time, begin func() func(K) V, take func(K, V)) (missing int) {
	r.late()
	keys = r.free(keys)
	for len(keys) > 0 && len(r.stuck) < maxStuck && !passed(until) {
		quit := make(chan struct{})
		go r.serve(keys, begin, quit)
		n := r.collect(keys, until, take)
		close(quit)
		if n < len(keys) {
			r.stuck[keys[n]] = true
			missing++
			n++
		}
		keys = keys[n:]
	}
	return missing + len(keys)
}

func passed(until time.Time) bool { return !until.IsZero() && time.Now().After(until) }

// free leaves out what is stuck.
func (r *reader[K, V]) free(keys []K) []K {
	if len(r.stuck) == 0 {
		return keys
	}
	var all []K
	for _, k := range keys {
		if !r.stuck[k] {
			all = append(all, k)
		}
	}
	return all
}

// late takes the answers of those that were left behind, and returns how many
// came. They are too old to tell anything, but that they can be asked again.
func (r *reader[K, V]) late() (n int) {
	for ; ; n++ {
		select {
		case a := <-r.answers:
			delete(r.stuck, a.key)
		default:
			return n
		}
	}
}

// collect takes the answers about keys, and returns how many came.
func (r *reader[K, V]) collect(keys []K, until time.Time, take func(K, V)) int {
	timeout := time.NewTimer(readPatience)
	defer timeout.Stop()
	for n := 0; n < len(keys); {
		wait := readPatience
		if !until.IsZero() {
			wait = min(wait, time.Until(until))
		}
		timeout.Reset(wait)
		select {
		case a := <-r.answers:
			delete(r.stuck, a.key)
			if a.key == keys[n] {
				take(a.key, a.value)
				n++
			}
		case <-timeout.C:
			return n
		}
	}
	return len(keys)
}

// serve answers for one key after the other until nobody waits any more. It does
// not wait for the owner for long: those that were left behind have an answer or
// two to give, for which there is room.
func (r *reader[K, V]) serve(keys []K, begin func() func(K) V, quit <-chan struct{}) {
	defer func() { _ = recover() }() // a fault is an answer that does not come
	read := begin()
	for _, k := range keys {
		r.answers <- answer[K, V]{k, read(k)}
		select {
		case <-quit:
			return
		default:
		}
	}
}
