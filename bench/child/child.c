/*
 * The measured workload: small, static, and silent. It reports through a
 * shared file mapping, so that the harness can read what happened without a
 * system call that the measured init would have to share a core with.
 *
 *   child stage [-m] [-c FILE] [-n LIMIT] [-u UID] COMMAND...
 *   child live FILE MS            exit MS milliseconds after the start
 *   child wait FILE               stamp each USR1, for ever
 *   child orphans FILE N BURST    on each go: make N orphans, BURST at a time
 *   child fill FILE MS            after MS milliseconds: fork until it fails
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The words of the mapping; board.go has the same list in the same order. */
enum { READY, BORN, LAST, GO, DONE, FORKS, FAILURES, SIGNALS, STAMP, WORDS };

/*
 * The program's entry point is here, not in libc: the time is taken with the
 * first instructions after execve(2), before libc has relocated or set up
 * anything, and only then does control go to libc's own _start. Registers that
 * _start reads are given back as the kernel left them.
 */
struct timespec born;

#if defined(__x86_64__)
__asm__(".globl first\n"
	"first:\n"
	"	mov $228, %eax\n" /* clock_gettime */
	"	mov $1, %edi\n"	  /* CLOCK_MONOTONIC */
	"	lea born(%rip), %rsi\n"
	"	syscall\n"
	"	xor %edi, %edi\n"
	"	xor %esi, %esi\n"
	"	jmp _start\n");
#elif defined(__aarch64__)
__asm__(".globl first\n"
	"first:\n"
	"	mov x8, #113\n" /* clock_gettime */
	"	mov x0, #1\n"	/* CLOCK_MONOTONIC */
	"	adrp x1, born\n"
	"	add x1, x1, :lo12:born\n"
	"	svc #0\n"
	"	mov x0, #0\n"
	"	b _start\n");
#else
#error "no entry point for this architecture"
#endif

static volatile int64_t *board;

static int64_t nanos(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

/* A plain system call: the first call through the vDSO costs page faults. */
static int64_t now(void)
{
	struct timespec t;
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return nanos(&t);
}

static void pause_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static void on_usr1(int sig)
{
	int64_t t = now();
	(void)sig;
	board[STAMP] = t;
	__atomic_add_fetch(&board[SIGNALS], 1, __ATOMIC_RELEASE);
}

static void catch_usr1(void)
{
	struct sigaction a = {.sa_handler = on_usr1};
	sigaction(SIGUSR1, &a, NULL);
}

static void map_board(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		_exit(111);
	board = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED)
		_exit(112);
	close(fd);
	board[BORN] = nanos(&born);
}

static void set(int word, int64_t value)
{
	__atomic_store_n(&board[word], value, __ATOMIC_RELEASE);
}

static void live(long ms)
{
	set(READY, 1);
	if (ms)
		pause_ms(ms);
	board[LAST] = now();
	_exit(0);
}

static void wait_for_signals(void)
{
	catch_usr1();
	set(READY, 1);
	for (;;)
		pause();
}

/* fork(2), tried again while the table is full of what the init has not reaped. */
static pid_t fork_retry(void)
{
	pid_t pid;
	while ((pid = fork()) < 0) {
		__atomic_add_fetch(&board[FAILURES], 1, __ATOMIC_RELAXED);
		pause_ms(1);
	}
	return pid;
}

/* A double fork: the one in the middle goes, its children are the init's. */
static void make_orphans(int count)
{
	pid_t middle = fork_retry();
	if (middle == 0) {
		for (int i = 0; i < count; i++)
			if (fork_retry() == 0)
				_exit(0);
		_exit(0);
	}
	while (waitpid(middle, NULL, 0) < 0 && errno == EINTR)
		;
}

static void orphans(int n, int burst)
{
	set(READY, 1);
	for (int64_t turn = 1;; turn++) {
		while (__atomic_load_n(&board[GO], __ATOMIC_ACQUIRE) < turn)
			pause_ms(2);
		for (int left = n; left > 0; left -= burst) {
			int count = left < burst ? left : burst;
			make_orphans(count);
			board[FORKS] += count;
		}
		set(DONE, turn);
	}
}

/*
 * Fills the process table and keeps it full: a slot that anybody gives up is
 * taken again within a millisecond.
 */
static void fill(long ms)
{
	sigset_t usr1;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	catch_usr1();
	pause_ms(ms);
	for (;;) {
		/* Some inits signal the whole group: only the first is to count. */
		sigprocmask(SIG_BLOCK, &usr1, NULL);
		pid_t pid = fork();
		if (pid == 0)
			for (;;)
				pause();
		sigprocmask(SIG_UNBLOCK, &usr1, NULL);
		if (pid > 0) {
			board[FORKS]++;
			continue;
		}
		if (++board[FAILURES] == 3)
			set(READY, 1);
		pause_ms(1);
	}
}

static void join_cgroup(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		_exit(113);
	close(fd);
}

/* A /proc of our own PID namespace, seen by nobody outside: proc(5). */
static void mount_proc(void)
{
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		_exit(114);
}

static void become(uid_t uid)
{
	if (setgroups(0, NULL) || setgid(uid) || setuid(uid))
		_exit(115);
}

/* What has to be done between clone(2) and the init's execve(2). */
static void stage(char **argv)
{
	uid_t uid = 0;
	for (; *argv && **argv == '-'; argv++) {
		switch ((*argv)[1]) {
		case 'm':
			mount_proc();
			break;
		case 'c':
			join_cgroup(*++argv);
			break;
		case 'n': {
			rlim_t n = strtoul(*++argv, NULL, 10);
			struct rlimit limit = {n, n};
			setrlimit(RLIMIT_NPROC, &limit);
			break;
		}
		case 'u':
			uid = strtoul(*++argv, NULL, 10);
			break;
		}
	}
	if (uid)
		become(uid);
	execvp(argv[0], argv);
	_exit(127);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 110;
	if (!strcmp(argv[1], "stage"))
		stage(argv + 2);
	map_board(argv[2]);
	if (!strcmp(argv[1], "live") && argc == 4)
		live(atol(argv[3]));
	if (!strcmp(argv[1], "wait"))
		wait_for_signals();
	if (!strcmp(argv[1], "orphans") && argc == 5)
		orphans(atoi(argv[3]), atoi(argv[4]));
	if (!strcmp(argv[1], "fill") && argc == 4)
		fill(atol(argv[3]));
	return 110;
}
