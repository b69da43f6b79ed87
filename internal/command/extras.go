package command

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/fabric/daemon"
)

// Extras are what a program has beyond the plain command. The zero value has nothing.
type Extras struct {
	Name    string  // of the program; "" is gomem
	Cluster Cluster // nil: the program knows of no other process
}

// name is the program's.
func (x Extras) name() string { return cmp.Or(x.Name, "gomem") }

// Cluster starts and joins jobs of several processes.
type Cluster interface {
	// World is this process' place in its job, by its environment and what flags say.
	World(f JobFlags) (World, error)
	// Launch starts f.Workers workers of this program on this machine and waits for them.
	// With f.Min they may end before the job does, as long as so many are left. Signals that
	// end ctx are passed on to them. An error is of a worker; it is a *[WorkerError] if that
	// has said itself what was wrong.
	Launch(ctx context.Context, f JobFlags, args []string, stdout, stderr io.Writer) error
	// Join meets the other processes of the job. say takes what a person should know, and log
	// what befalls the process.
	Join(ctx context.Context, f JobFlags, w World, say func(string), log *slog.Logger) (*Job, error)
	// Diagnose says of every process of a job what may be wrong with it.
	Diagnose(ctx context.Context, f JobFlags, w World) ([]Finding, error)
	// Serve answers who asks an address for metrics until the function is called; in them
	// are the samples.
	Serve(address string, samples func() []Sample) (stop func() error, at string, err error)
}

// World is the place of a process in its job.
type World struct {
	Rank, Size int
	Job        string // its name
	Local      int    // which of the job's processes on this machine it is, from 0
	Launched   bool   // by this program, on this machine
	Launcher   string // who else has started it, in a word
}

// Job is a job that this process has joined.
type Job struct {
	// Enter is nil, unless processes may come and go and others are at work. Then this one is
	// in no view before Enter returns, which is to be called when it can begin at once; View,
	// Transport, Alive and Views come with that.
	Enter func(ctx context.Context) error

	View      distrib.View
	Transport distrib.Transport
	// Expel asks for views without a node of the present one.
	Expel func(ctx context.Context, node distrib.NodeID) error
	// Alive ends, with a cause, when the job goes on without this process; it may be nil.
	Alive context.Context
	// Views are those that follow; Open begins one, after the transport of the one before was
	// closed; and Renew asks for another one, also of the same processes. They are of jobs
	// whose processes may come and go, and nil of others.
	Views <-chan distrib.View
	Open  func(v distrib.View) (distrib.Transport, error)
	Renew func(ctx context.Context) error
	// Again is called when Alive has ended, and has this process be one that comes later: View,
	// Transport, Alive and Views are then others. It is nil where it cannot be.
	Again func(ctx context.Context) error
	// ID is a random id of such a job, and Saved asks whether this process is in its newest view:
	// see [train.Fence].
	ID    func() string
	Saved func(ctx context.Context, step int, path string) (time.Time, int64, error)

	// Counts are how often something befell this process, for metrics; it may be nil.
	Counts func() []Sample
	// Elect chooses one of the processes for a role; nil: nobody does.
	Elect daemon.Elector

	Leave func() error // ends this process' part in order; after the transport was closed
}

// WorkerError is a worker that failed and has said why.
type WorkerError struct{ Status int }

// Error is for who prints it nevertheless.
func (e *WorkerError) Error() string { return "a worker failed" }

// Finding is what a check of a process found.
type Finding struct {
	Node   string `json:"node"`
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"` // what to do
}

// Sample is a metric.
type Sample struct {
	Name, Help string
	Counter    bool // it only grows
	Value      float64
}
