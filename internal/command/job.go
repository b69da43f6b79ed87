package command

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// meetFlags say where the processes of a job meet. Plain gomem has none.
type meetFlags struct {
	Local     count    `group:"job" placeholder:"N"`
	Workers   count    `group:"job" placeholder:"N"`
	Rank      *whole   `group:"job" placeholder:"R"`
	Min       count    `group:"job" placeholder:"N"`
	Max       count    `group:"job" placeholder:"N"`
	Restarts  count    `group:"job" placeholder:"N"`
	Master    string   `group:"job" placeholder:"HOST:PORT"`
	Job       string   `group:"job" placeholder:"NAME"`
	Etcd      string   `group:"job" placeholder:"URLS|3"`
	Lease     lease    `group:"job" placeholder:"TIME"`
	TLS       string   `name:"tls" group:"job" enum:",auto,off" default:"" placeholder:"HOW"`
	TokenFile location `group:"job" placeholder:"FILE"`
	Insecure  bool     `group:"job"`
}

// JobFlags are what a command line says of where the processes of a job meet.
type JobFlags struct {
	Workers  int  // processes of the job, 0 if it is left to the environment
	Rank     *int // of this one, nil if it is left to the environment
	Min, Max int  // with how many the job may begin and go on; 0: with all
	Restarts int  // how often workers of this machine that end are started again
	// Again is the command line of one that is started again; nil: as it was.
	Again     func() []string
	Master    string        // host or host:port of rank 0
	Job       string        // name
	Etcd      []string      // URLs of an etcd that is there; none: workers have one in them
	Servers   int           // how many have; 0 and 1: rank 0 alone
	Lease     time.Duration // how long a worker may be silent before it is out; 0: as usual
	TLS       string        // auto or off; "" is auto, but off where all are on this machine
	TokenFile string
	Insecure  bool // off is taken for other machines too
}

// flags are the job's, for who joins it.
func (f meetFlags) flags() JobFlags {
	j := JobFlags{Workers: int(f.Workers), Min: int(f.Min), Max: int(f.Max), Master: f.Master,
		Restarts: int(f.Restarts), Job: f.Job, Lease: time.Duration(f.Lease), TLS: f.TLS,
		TokenFile: string(f.TokenFile), Insecure: f.Insecure}
	if f.Rank != nil {
		rank := int(*f.Rank)
		j.Rank = &rank
	}
	if n, err := strconv.Atoi(f.Etcd); err == nil {
		j.Servers = n
	} else if f.Etcd != "" {
		j.Etcd = strings.Split(f.Etcd, ",")
	}
	return j
}

// outlives reports whether the job's etcd does not end with worker 0.
func (f meetFlags) outlives() bool {
	j := f.flags()
	return len(j.Etcd) > 0 || j.Servers > 1
}

// given are the flags that are there, by name.
func (f meetFlags) given() []option {
	return []option{{"local", f.Local > 0}, {"workers", f.Workers > 0}, {"rank", f.Rank != nil},
		{"min", f.Min > 0}, {"max", f.Max > 0}, {"restarts", f.Restarts > 0},
		{"master", f.Master != ""}, {"job", f.Job != ""},
		{"etcd", f.Etcd != ""}, {"lease", f.Lease > 0}, {"tls", f.TLS != ""},
		{"token-file", f.TokenFile != ""}, {"insecure", f.Insecure}}
}

// firstGiven is the name of the first flag that is there, "" if none is.
func firstGiven(options ...[]option) string {
	for _, list := range options {
		for _, o := range list {
			if o.given {
				return o.name
			}
		}
	}
	return ""
}

// elsewhere refuses flags that the plain program has no use for, and says which one has.
func elsewhere(e *env, given ...[]option) error {
	name := firstGiven(given...)
	if name == "" {
		return nil
	}
	return usagef("--%s needs gomem-cluster, which takes the same flags: "+
		"go run ./cmd/gomem-cluster %s", name, strings.Join(quoted(e.args), " "))
}

// lease is a time after which a silent worker is out; zero means that none was given.
type lease time.Duration

// What leases there are. Etcd counts whole seconds, and needs more than one for another leader.
const leastLease, mostLease = 2 * time.Second, 10 * time.Minute

// UnmarshalText reads a time such as 10s or 1m30s.
func (l *lease) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < leastLease || d > mostLease || d%time.Second != 0 {
		return fmt.Errorf("%q: want whole seconds from 2s to 10m, such as 10s", text)
	}
	*l = lease(d)
	return nil
}

// bitRate is a number of bits a second; zero means that none was given.
type bitRate float64

// UnmarshalText reads a rate such as 200Mbps, 1.5Gbps or 800kbps.
func (r *bitRate) UnmarshalText(text []byte) error {
	word := strings.ToLower(strings.TrimSpace(string(text)))
	number, ok := strings.CutSuffix(word, "bps")
	scale := 1.0
	if n := len(number); n > 0 {
		if k := strings.IndexByte("kmgt", number[n-1]); k >= 0 {
			number = number[:n-1]
			for range k + 1 {
				scale *= 1e3
			}
		}
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(x*scale >= 1e3 && x*scale <= 1e15) {
		return fmt.Errorf("%q: want a rate in bits a second such as 200Mbps or 1.5Gbps", text)
	}
	*r = bitRate(x * scale)
	return nil
}

// String is the rate in the largest unit that it has one of.
func (r bitRate) String() string {
	for _, u := range []struct {
		name string
		size bitRate
	}{{"Tbps", 1e12}, {"Gbps", 1e9}, {"Mbps", 1e6}} {
		if r >= u.size {
			return fmt.Sprintf("%.4g%s", float64(r/u.size), u.name)
		}
	}
	return fmt.Sprintf("%.4gkbps", float64(r/1e3))
}

// launchedError ends a command whose work other processes have done, with their status.
type launchedError struct{ status int }

// Error is never printed.
func (e *launchedError) Error() string { return fmt.Sprintf("status %d", e.status) }

// world is this process' place in the run that the flags describe. Where workers are to be
// started on this machine, they have run when it returns, and the error says how that
// ended. keeping are flags that only several workers have a use for; again
// is the command line after a failure, see launch.
func (f meetFlags) world(ctx context.Context, e *env, keeping []option,
	again restart) (World, error) {
	cluster := e.extras.Cluster
	if cluster == nil {
		return World{Size: 1}, elsewhere(e, f.given(), keeping)
	}
	if err := f.fitting(); err != nil {
		return World{}, err
	}
	w, err := cluster.World(f.flags())
	if err != nil {
		return w, usagef("%w", err)
	}
	if n := max(int(f.Local), int(f.Max), w.Size); f.flags().Servers > n {
		return w, usagef("--etcd %s needs as many workers: there are %d", f.Etcd, n)
	}
	if f.Local > 1 && !w.Launched {
		return w, f.launch(ctx, e, again)
	}
	if name := firstGiven(keeping); w.Size == 1 && name != "" {
		return w, usagef("--%s does nothing for one worker: give --local N, or start several", name)
	}
	return w, nil
}

// maxLocal is the most workers that are started here: each is a process with a session of
// its own, and a machine that is asked for too many answers nobody any more.
const maxLocal = 256

// fitting refuses flags that contradict each other, and what no machine can do.
func (f meetFlags) fitting() error {
	_, number := strconv.Atoi(f.Etcd)
	among := []option{{"workers", f.Workers > 0}, {"rank", f.Rank != nil},
		{"master", f.Master != ""}, {"max", f.Max > 0}}
	switch name := firstGiven(among); {
	case f.Local > 0 && name != "":
		return usagef("--local and --%s can't be used together: --local starts all workers of a "+
			"job, here", name)
	case f.Local > 0 && f.Min > f.Local:
		return usagef("--min %d is more than --local %d", f.Min, f.Local)
	case f.Local > maxLocal:
		return usagef("--local %d: at most %d workers are started on a machine", f.Local, maxLocal)
	case f.Rank != nil && f.Workers == 0:
		return usagef("--rank needs --workers N")
	case f.Max > 0 && f.Max < f.Min:
		return usagef("--max %d is less than --min %d", f.Max, f.Min)
	case number == nil && f.Etcd != "1" && f.Etcd != "3":
		return usagef("--etcd %s: etcd is in 1 worker or in 3, or at URLs", f.Etcd)
	case f.Insecure && f.TLS != "off":
		return usagef("--insecure needs --tls off: it allows that for other machines")
	}
	return nil
}

// quiet is the environment of a worker whose run another one shows.
func (e *env) quiet() *env {
	q := *e
	q.stdout, q.stderr = io.Discard, io.Discard
	return &q
}

// orderly is the environment of goroutines that share its outputs.
func (e *env) orderly() *env {
	o := *e
	o.stderr = &orderly{w: e.stderr}
	return &o
}
