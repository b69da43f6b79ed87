package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gomem/gomem/distrib/cluster/scratch"
)

// parentVar tells a process that its standard input ends when the process that started it
// does.
const parentVar = "GOMEM_PARENT"

// Job is processes of this executable on this machine.
type Job struct {
	N    int
	Args []string // without the executable's name; everybody can read them: no secrets
	Env  []string // in addition to this process' environment, "NAME=value"
	// Token is the contents of the file that TokenFile names; nil: rank 0 writes it.
	Token  []byte
	Stdout io.Writer // nil: os.Stdout
	Stderr io.Writer // nil: os.Stderr
	// Prefix begins each line of a rank's output; nil: "[rank] ".
	Prefix func(rank int) string
	// Signals are passed on to the processes, which do not get a terminal's themselves.
	Signals <-chan os.Signal
	// Least is how many processes the job goes on with, 0: all. Signals go to the first that
	// is left then, which ends the others in order. Vital says that the first one's end is the
	// job's, however many are left.
	Least int
	Vital bool
	// Restarts is how often processes that have failed are started again, where Least says that
	// the others go on meanwhile. The first one is not.
	Restarts int
	// Again is the command line of a process that is started again, as Args; nil: Args. By then
	// there may be nobody left whose state it could take over.
	Again func() []string
	// Log takes what a person should know, a line at a time; nil: nobody.
	Log func(string)
	// Patience is how long the others have after the first failure to notice and to save,
	// 0 for 10 s, and Grace how long they have after SIGTERM, 0 for 5 s.
	Patience, Grace time.Duration
}

// ExitError is a process of a job that failed, the first to do so.
type ExitError struct {
	Rank int
	Err  error // of os/exec
}

// Error is one line.
func (e *ExitError) Error() string {
	return fmt.Sprintf("worker %d failed first: %v", e.Rank, e.Err)
}

// Unwrap is how it ended.
func (e *ExitError) Unwrap() error { return e.Err }

// Code is the exit status, or 1 for a process that a signal has ended.
func (e *ExitError) Code() int {
	var exit *exec.ExitError
	if errors.As(e.Err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	return 1
}

// Local starts a job and waits for it. Each process has torchrun's variables, a rank-0
// address on loopback, TokenFile and ScratchDir. When one fails the others are told, given
// time to notice, and ended; the error is an [*ExitError] that names the first. When ctx ends
// all are ended, too. No process outlives this one, even if it is killed: on Linux the kernel
// sees to it, elsewhere the processes, by [Heed].
func Local(ctx context.Context, job Job) error {
	if job.N < 1 {
		return fmt.Errorf("--local %d: a job has at least one worker", job.N)
	}
	dir, err := scratch.Make("", "gomem-job-")
	if err != nil {
		return err
	}
	defer dir.Remove()
	env, err := job.environment(dir.Path)
	if err != nil {
		return err
	}
	r := &running{job: job, env: env, exits: make(chan exit, job.N),
		starts: make(chan func())}
	defer r.out.flush()
	defer close(r.starts)
	go func() { // the thread that starts a process is its parent: it must stay
		runtime.LockOSThread()
		for start := range r.starts {
			start()
		}
	}()
	if err := r.start(); err != nil {
		r.kill()
		r.drain()
		return err
	}
	return r.wait(ctx)
}

// environment is the variables that all processes of a job share.
func (job *Job) environment(dir string) ([]string, error) {
	token := filepath.Join(dir, "token")
	if job.Token != nil {
		if err := os.WriteFile(token, job.Token, 0o600); err != nil {
			return nil, err
		}
	}
	port, err := freePort()
	if err != nil {
		return nil, fmt.Errorf("no port on loopback: %w", err)
	}
	env := append(os.Environ(), job.Env...)
	return append(env, TokenFile+"="+token, ScratchDir+"="+dir, parentVar+"=stdin",
		"MASTER_ADDR=127.0.0.1", "MASTER_PORT="+strconv.Itoa(port),
		"WORLD_SIZE="+strconv.Itoa(job.N), "LOCAL_WORLD_SIZE="+strconv.Itoa(job.N),
		"TORCHELASTIC_USE_AGENT_STORE=False",
		"TORCHELASTIC_RUN_ID=local-"+strconv.Itoa(os.Getpid())), nil
}

// freePort is one that nobody listens at now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// running is the processes of a job.
type running struct {
	job      Job
	env      []string    // that all share
	starts   chan func() // for the thread that is the processes' parent
	restarts int         // that there were
	cmds     []*exec.Cmd
	words    []io.Writer // what each of them is told, by a line
	exits    chan exit
	out      outputs
	left     int
	gone     []bool    // by rank
	done     bool      // the first that was left has ended well, and so the job
	over     bool      // the job has failed, or is to end
	last     os.Signal // that was passed on to one of them, where they go one by one
	told     int       // whose rank that is
}

type exit struct {
	rank int
	err  error
}

// start starts all processes.
func (r *running) start() error {
	r.out.init(r.job)
	r.gone = make([]bool, r.job.N)
	r.cmds, r.words = make([]*exec.Cmd, r.job.N), make([]io.Writer, r.job.N)
	for rank := range r.job.N {
		if err := r.launch(rank, r.job.Args); err != nil {
			return err
		}
	}
	return nil
}

// launch starts a process, by the thread that stays.
func (r *running) launch(rank int, args []string) error {
	failed := make(chan error)
	r.starts <- func() { failed <- r.process(rank, args) }
	return <-failed
}

// process starts the process of a rank.
func (r *running) process(rank int, args []string) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(executable, args...)
	n := strconv.Itoa(rank)
	cmd.Env = append(r.env[:len(r.env):len(r.env)], "RANK="+n, "LOCAL_RANK="+n,
		"TORCHELASTIC_RESTART_COUNT="+strconv.Itoa(r.restarts))
	cmd.Stdout, cmd.Stderr = r.out.writers(rank)
	cmd.SysProcAttr = attributes()
	cmd.WaitDelay = time.Second
	words, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("worker %d does not start: %w", rank, err)
	}
	r.cmds[rank], r.words[rank] = cmd, words
	r.left++
	go func() { r.exits <- exit{rank, cmd.Wait()} }()
	return nil
}

// wait is the life of a job: until all have ended, what ends the rest after the first
// failure is first time, then SIGTERM, then SIGKILL.
func (r *running) wait(ctx context.Context) error {
	var first error
	var next <-chan time.Time
	steps := []func(){r.terminate, r.kill}
	pauses := []time.Duration{or(r.job.Grace, 5*time.Second), 0}
	end := func(after time.Duration) {
		if next == nil && len(steps) > 0 {
			next = time.After(after)
		}
	}
	cancelled := ctx.Done()
	for r.left > 0 {
		select {
		case e := <-r.exits:
			r.left--
			if r.ended(e) { // for who is stopped it is over, too
				end(or(r.job.Patience, 10*time.Second))
			}
			if e.err != nil && first == nil && !r.spared(e) {
				first = &ExitError{e.rank, e.err}
				r.over = true
				r.warn()
				end(or(r.job.Patience, 10*time.Second))
			}
		case s := <-r.job.Signals:
			r.over = true
			r.pass(s)
		case <-cancelled:
			cancelled, next, r.over = nil, nil, true
			end(0)
			if first == nil {
				first = context.Cause(ctx)
			}
		case <-next:
			steps[0]()
			after := pauses[0]
			next, steps, pauses = nil, steps[1:], pauses[1:]
			end(after)
		}
	}
	return first
}

// ended notes an exit, and reports whether it is the job's end where workers come and go: that
// of the first that was left, if it has ended well.
func (r *running) ended(e exit) bool {
	first := slices.Index(r.gone, false)
	r.gone[e.rank] = true
	if e.rank == first && e.err == nil {
		r.done = true
	}
	return r.done && r.job.Least > 0
}

// spared reports whether the job goes on without a process that has failed, and says so.
func (r *running) spared(e exit) bool {
	switch {
	case r.job.Least == 0 || e.rank == 0 && r.job.Vital:
		return false
	case r.done:
		return true
	case r.left < r.job.Least:
		return false
	}
	if r.job.Log != nil {
		r.job.Log(fmt.Sprintf("worker %d of %d has ended: %v; %d are left, %d are enough", e.rank,
			r.job.N, e.err, r.left, r.job.Least))
	}
	if r.last != nil && e.rank == r.told { // it was to end the job, and did not live to
		r.pass(r.last)
	}
	r.again(e.rank)
	return true
}

// again starts a process again in the place of one that has failed, if that may be. What comes of
// that is seen when it ends.
func (r *running) again(rank int) {
	if r.over || rank == 0 || r.restarts == r.job.Restarts {
		return
	}
	r.restarts++
	say := fmt.Sprintf("worker %d is started again, restart %d of %d", rank, r.restarts,
		r.job.Restarts)
	args := r.job.Args
	if r.job.Again != nil {
		args = r.job.Again()
	}
	if err := r.launch(rank, args); err != nil {
		say = err.Error()
	} else {
		r.gone[rank] = false
	}
	if r.job.Log != nil {
		r.job.Log(say)
	}
}

// pass passes a signal on: to all, or where they may go one by one, to the first that is
// left, or else some would seem to leave before the others.
func (r *running) pass(s os.Signal) {
	if r.job.Least == 0 {
		r.signal(s)
		return
	}
	for rank, cmd := range r.cmds {
		if !r.gone[rank] {
			r.last, r.told = s, rank
			_ = cmd.Process.Signal(s)
			return
		}
	}
}

func or(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// signal sends a signal to all that live; to one that has ended it is no error.
func (r *running) signal(s os.Signal) {
	for _, cmd := range r.cmds {
		if cmd != nil { // it was started
			_ = cmd.Process.Signal(s)
		}
	}
}

func (r *running) terminate() { r.signal(terminate()) }
func (r *running) kill()      { r.signal(os.Kill) }

func (r *running) drain() {
	for ; r.left > 0; r.left-- {
		<-r.exits
	}
}

// warn tells all that live that one has failed. A line fits into a pipe that is empty.
func (r *running) warn() {
	for _, w := range r.words {
		_, _ = io.WriteString(w, "a worker has failed\n")
	}
}

// Heed is what a process that was started by [Local] is told by its standard input, which it has
// for nothing else. failed is closed when another one has failed, so that it is no use to wait
// for it to come; gone when the process that started this one is gone, which one is to end with.
// Both are nil where there is no such process.
func Heed(env Environment, stdin io.Reader) (failed, gone <-chan struct{}) {
	if v, _ := env.Lookup(parentVar); v != "stdin" {
		return nil, nil
	}
	word, end := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(end) // however it ends, there is no parent
		if _, err := stdin.Read(make([]byte, 1)); err == nil {
			close(word)
		}
		_, _ = io.Copy(io.Discard, stdin)
	}()
	return word, end
}

// outputs puts the lines of processes together, each as a whole.
type outputs struct {
	mu    sync.Mutex
	job   Job
	lines []*lines
}

func (o *outputs) init(job Job) {
	if job.Stdout == nil {
		job.Stdout = os.Stdout
	}
	if job.Stderr == nil {
		job.Stderr = os.Stderr
	}
	if job.Prefix == nil {
		job.Prefix = func(rank int) string { return "[" + strconv.Itoa(rank) + "] " }
	}
	o.job = job
}

func (o *outputs) writers(rank int) (stdout, stderr io.Writer) {
	prefix := o.job.Prefix(rank)
	a := &lines{all: o, to: o.job.Stdout, prefix: prefix}
	b := &lines{all: o, to: o.job.Stderr, prefix: prefix}
	o.lines = append(o.lines, a, b)
	return a, b
}

// flush writes what ended without an end of line.
func (o *outputs) flush() {
	for _, l := range o.lines {
		if len(l.rest) > 0 {
			_ = l.emit([]byte("\n"))
		}
	}
}
