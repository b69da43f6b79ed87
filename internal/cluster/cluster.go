package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/gomem/gomem/distrib/cluster/launch"
	"github.com/gomem/gomem/distrib/cluster/metrics"
	"github.com/gomem/gomem/internal/command"
)

// Cluster is a [command.Cluster].
type Cluster struct {
	failed <-chan struct{} // closed when another process of the launcher's has failed; or nil
}

// New is that of this process, which ends when the one that launched it, if one did, is gone.
func New() Cluster {
	failed, gone := launch.Heed(launch.System(), os.Stdin)
	if gone != nil {
		go func() {
			<-gone
			os.Exit(1)
		}()
	}
	return Cluster{failed}
}

// World is this process' place in its job. An etcd that cannot be reached as it is named is
// refused here, before others are started.
func (Cluster) World(f command.JobFlags) (command.World, error) {
	w, err := find(f)
	if err == nil {
		err = beside(f).CheckEndpoints()
	}
	return command.World{Rank: w.Rank, Size: w.Size, Job: w.Job, Local: w.Local,
		Launcher: w.Launcher, Launched: launched()}, err
}

// launchedVar tells a process that this program has launched it.
const launchedVar = "GOMEM_LAUNCHED"

func launched() bool { return os.Getenv(launchedVar) != "" }

func find(f command.JobFlags) (launch.World, error) {
	return launch.Find(launch.System(), launch.Flags{Rank: f.Rank, Size: f.Workers,
		Master: f.Master, Job: f.Job})
}

// Launch starts workers here and waits for them. The first one's lines are as they are,
// the others' say whose they are.
func (Cluster) Launch(ctx context.Context, f command.JobFlags, args []string, stdout,
	stderr io.Writer) error {
	workers := f.Workers
	signals := make(chan os.Signal, 1)
	stop := context.AfterFunc(ctx, func() { signals <- command.Signal(ctx) })
	defer stop()
	err := launch.Local(context.WithoutCancel(ctx), launch.Job{N: workers, Args: args,
		Least: f.Min, Restarts: f.Restarts, Again: f.Again,
		Vital: len(f.Etcd) == 0 && f.Servers < 2,
		Log: func(text string) {
			fmt.Fprintf(stderr, "gomem: %s\n", text)
		},
		Env: environment(workers), Stdout: stdout, Stderr: &once{w: stderr}, Signals: signals,
		Prefix: func(rank int) string {
			if rank == 0 {
				return ""
			}
			return "[" + strconv.Itoa(rank) + "] "
		}})
	first, failed := errors.AsType[*launch.ExitError](err)
	if exit, ok := errors.AsType[*exec.ExitError](err); failed && ok && exit.ExitCode() > 0 {
		return &command.WorkerError{Status: first.Code()}
	}
	return err
}

// environment divides the processors among the workers, unless that is done already. Two
// are the least: one computes while the other one exchanges.
func environment(workers int) []string {
	env := []string{launchedVar + "=1"}
	if os.Getenv("GOMAXPROCS") == "" {
		env = append(env, "GOMAXPROCS="+strconv.Itoa(max(2, runtime.NumCPU()/workers)))
	}
	return env
}

// Serve serves metrics.
func (Cluster) Serve(address string, samples func() []command.Sample) (func() error, string,
	error) {
	s, err := metrics.Serve(address, func() (out []metrics.Sample) {
		for _, x := range samples() {
			y := metrics.Sample{Name: x.Name, Help: x.Help, Kind: metrics.Gauge, Value: x.Value}
			if x.Counter {
				y.Kind = metrics.Counter
			}
			out = append(out, y)
		}
		return out
	})
	if err != nil {
		return nil, "", err
	}
	return s.Close, "http://" + s.Addr + "/metrics", nil
}

// counts are the metrics of what befell this process.
func (j *joiner) counts() []command.Sample {
	n := j.agreed.Counts()
	return []command.Sample{
		{Name: "gomem_views_total", Counter: true, Value: float64(n.Views),
			Help: "Views of the job that this worker was in."},
		{Name: "gomem_leases_lost_total", Counter: true, Value: float64(n.Leases),
			Help: "Leases of this worker that were not renewed in time."},
		{Name: "gomem_elections_total", Counter: true, Value: float64(n.Elections),
			Help: "Roles that this worker was elected to lead in."},
		{Name: "gomem_control_stalls_total", Counter: true, Value: float64(n.Stalls),
			Help: "Reports of a wait for others to agree that goes on."},
		{Name: "gomem_evictions_total", Counter: true, Value: float64(n.Evictions),
			Help: "Workers that were taken out of the job without having asked."},
	}
}
