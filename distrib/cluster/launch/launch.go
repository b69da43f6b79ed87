package launch

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// TokenFile is the variable that names the file with a job's join token.
const TokenFile = "GOMEM_TOKEN_FILE"

// ScratchDir is the variable that names a directory of a job that [Local] has started, for what
// its processes need while they live. It ends with the job, however they end.
const ScratchDir = "GOMEM_SCRATCH_DIR"

// World is the place of a process in its job.
type World struct {
	Launcher  string // who said so: "torchrun", "Slurm", "flags", "none" and so on
	Rank      int    // from 0
	Size      int    // of the job, in processes
	Local     int    // the rank among the job's processes on this machine
	LocalSize int    // how many they are; 0 if not known
	Master    string // host:port where rank 0 can be reached; "" if the job is one process
	Job       string // a name that no other job of the site has at this time, or "gomem"
	Restart   int    // how often the launcher has started the job again
}

// Flags is what the command line says; the zero value says nothing.
type Flags struct {
	Rank   *int   // --rank
	Size   int    // --workers
	Master string // --master: host or host:port of rank 0
	Job    string // --job
}

// Environment is what Find looks at.
type Environment struct {
	Lookup   func(name string) (string, bool)
	Hostname string
	Hosts    string // the text of /etc/hosts, which has a pod's own domain
}

// System is the environment of this process.
func System() Environment {
	name, _ := os.Hostname()
	hosts, _ := os.ReadFile("/etc/hosts")
	return Environment{os.LookupEnv, name, string(hosts)}
}

// ConflictError is one thing that is said twice, and differently.
type ConflictError struct {
	Name, Value           string // "WORLD_SIZE", "4"
	OtherName, OtherValue string // "--workers", "8"
}

// Error is one line that names both and their values.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s=%s contradicts %s=%s", e.Name, e.Value, e.OtherName, e.OtherValue)
}

// Find is the place of this process in its job. Without a launcher and flags it is a job
// of one. Errors name the variables or flags and their values; those that contradict each
// other are a [*ConflictError].
func Find(env Environment, flags Flags) (World, error) {
	s := &said{env: env, flags: flags}
	l := s.launcher()
	w := World{Launcher: l.name}
	rank, size := s.rank(l), s.size(l)
	if s.err != nil {
		return World{}, s.err
	}
	if err := checkRank(rank, size, l); err != nil {
		return World{}, err
	}
	w.Rank, w.Size = rank.n, max(size.n, 1)
	w.Local, w.LocalSize = s.first(l.local...).n, s.first(l.localSize...).n
	w.Restart = s.first(l.restart...).n
	w.Job = s.job(l)
	if s.err == nil && w.Size > 1 {
		w.Master = s.master(l, w)
	}
	if s.err != nil {
		return World{}, s.err
	}
	return w, nil
}

// checkRank refuses ranks without a size, sizes without a rank, and ranks beyond sizes.
func checkRank(rank, size number, l launcher) error {
	switch {
	case rank.name == "" && size.n > 1:
		return fmt.Errorf("%s says that there are several processes, but not which one this "+
			"is: set RANK or give --rank (--local %d starts them here)", size, size.n)
	case rank.name != "" && size.name == "":
		return fmt.Errorf("%s is set, but not of how many: set WORLD_SIZE or give --workers "+
			"(launcher: %s)", rank, l.name)
	case rank.name != "" && rank.n >= size.n:
		return fmt.Errorf("%s is out of range: %s, and ranks start at 0", rank, size)
	}
	return nil
}

// number is a variable or flag with its value.
type number struct {
	name string // "": not set
	n    int
}

func (n number) String() string { return n.name + "=" + strconv.Itoa(n.n) }

// said reads variables, and keeps the first error.
type said struct {
	env   Environment
	flags Flags
	err   error
}

// get is a variable's value; one that is empty is not set.
func (s *said) get(names ...string) (name, value string) {
	for _, name := range names {
		if v, ok := s.env.Lookup(name); ok && v != "" {
			return name, v
		}
	}
	return "", ""
}

// first is the first of some variables that is set, as a number.
func (s *said) first(names ...string) number {
	name, v := s.get(names...)
	if name == "" {
		return number{}
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		s.fail(fmt.Errorf("%s=%s is not a number from 0", name, v))
	}
	return number{name, n}
}

func (s *said) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// agree is the one of two that is set; if both are, they must be equal.
func (s *said) agree(a, b number) number {
	if a.name != "" && b.name != "" && a.n != b.n {
		s.fail(&ConflictError{a.name, strconv.Itoa(a.n), b.name, strconv.Itoa(b.n)})
	}
	if a.name == "" {
		return b
	}
	return a
}

func (s *said) rank(l launcher) number {
	rank := s.first(l.rank...)
	if s.flags.Rank == nil {
		return rank
	}
	if *s.flags.Rank < 0 {
		s.fail(fmt.Errorf("--rank=%d is not a number from 0", *s.flags.Rank))
	}
	return s.agree(rank, number{"--rank", *s.flags.Rank})
}

// size is what the launcher, WORLD_SIZE and --workers agree on.
func (s *said) size(l launcher) number {
	size := s.agree(s.first(l.size...), s.first("WORLD_SIZE"))
	if s.flags.Size < 0 {
		s.fail(fmt.Errorf("--workers=%d is not a number from 1", s.flags.Size))
	}
	if s.flags.Size > 0 {
		size = s.agree(size, number{"--workers", s.flags.Size})
	}
	if size.name != "" && size.n == 0 {
		s.fail(fmt.Errorf("%s: a job has at least one process", size))
	}
	return size
}

func (s *said) job(l launcher) string {
	if s.flags.Job != "" {
		return s.flags.Job
	}
	if l.jobName != nil {
		return l.jobName(s)
	}
	if _, v := s.get(l.job...); v != "" {
		return v
	}
	return "gomem"
}

// master is the flag's address, MASTER_ADDR, or where the launcher puts rank 0.
func (s *said) master(l launcher, w World) string {
	host, port := hostPort(s.flags.Master)
	if host == "" {
		_, address := s.get("MASTER_ADDR")
		var also string
		host, also = hostPort(address)
		if p := s.first("MASTER_PORT"); port == "" && also != "" && p.name != "" &&
			strconv.Itoa(p.n) != also {
			s.fail(fmt.Errorf("MASTER_ADDR has port %.20q, MASTER_PORT is %d: give one", also, p.n))
		} else if port == "" && p.name == "" {
			port = also
		}
	}
	if host == "" && w.LocalSize == w.Size {
		host = "127.0.0.1"
	}
	if host == "" && l.host != nil {
		host = l.host(s)
	}
	if host == "" {
		s.fail(fmt.Errorf("where rank 0 is, is not known (launcher: %s): "+
			"set MASTER_ADDR or give --master", l.name))
	}
	if port == "" {
		port = s.port(l)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		s.fail(fmt.Errorf("port %.20q of rank 0 is not a number from 1 to 65535", port))
	}
	return net.JoinHostPort(host, port)
}

// hostPort is the host of an address, without the brackets that one of IPv6 may have, and its
// port, or "".
func hostPort(address string) (host, port string) {
	if host, port, err := net.SplitHostPort(address); err == nil {
		return host, port
	}
	if inside, ok := strings.CutPrefix(address, "["); ok {
		if inside, ok = strings.CutSuffix(inside, "]"); ok {
			return inside, ""
		}
	}
	return address, ""
}

// defaultPort is rank 0's unless something says otherwise.
const defaultPort = 29400

// port is MASTER_PORT, or one that the launcher's jobs have each to themselves. Where
// torchrun's agent keeps its own store at MASTER_PORT, it is the next.
func (s *said) port(l launcher) string {
	if p := s.first("MASTER_PORT"); p.name != "" {
		if _, v := s.get("TORCHELASTIC_USE_AGENT_STORE"); v == "True" {
			p.n++
		}
		return strconv.Itoa(p.n)
	}
	if l.port != nil {
		return strconv.Itoa(l.port(s))
	}
	return strconv.Itoa(defaultPort)
}
