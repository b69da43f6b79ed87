package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/wrap"
)

// inMemory is a cluster whose processes are goroutines.
type inMemory struct {
	t    *testing.T
	net  *memnet.Network // nil for who launches
	rank int
	of   int
	args func(rank int) []string // more of a worker; nil: none
	ctx  func(ctx context.Context, rank int) context.Context
	// meter counts what all workers send; nil: nothing does
	meter *wrap.Meter
}

func (c inMemory) World(f JobFlags) (World, error) {
	if c.net == nil {
		return World{Size: 1}, nil
	}
	return World{Rank: c.rank, Size: c.of, Launched: true}, nil
}

// Launch runs the workers. The first that fails is the error.
func (c inMemory) Launch(ctx context.Context, f JobFlags, args []string, stdout,
	stderr io.Writer) error {
	n := f.Workers
	net := memnet.NewNetwork(n, memnet.Options{})
	status := make([]int, n)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for rank := range n {
		worker := c
		worker.net, worker.rank, worker.of = net, rank, n
		own := args
		if c.args != nil {
			own = with(args, c.args(rank)...)
		}
		out := stdout
		if rank > 0 {
			out = loud{c.t}
		}
		wctx := ctx
		if c.ctx != nil {
			wctx = c.ctx(ctx, rank)
		}
		wg.Go(func() {
			var said bytes.Buffer
			status[rank] = Main(wctx, own, out, &said, Extras{Cluster: worker})
			mu.Lock()
			defer mu.Unlock()
			for line := range strings.Lines(said.String()) {
				io.WriteString(stderr, map[bool]string{true: "[worker] "}[rank > 0]+line)
			}
		})
	}
	wg.Wait()
	for _, s := range status {
		if s != exitOK {
			return &WorkerError{s}
		}
	}
	return nil
}

// loud is output that there must not be.
type loud struct{ t *testing.T }

func (l loud) Write(b []byte) (int, error) {
	l.t.Errorf("a worker prints %q", b)
	return len(b), nil
}

func (c inMemory) Join(context.Context, JobFlags, World, func(string),
	*slog.Logger) (*Job, error) {
	v := distrib.View{Epoch: 1, Self: distrib.NodeID(c.rank)}
	for i := range c.of {
		v.Nodes = append(v.Nodes, distrib.Node{ID: distrib.NodeID(i)})
	}
	t := distrib.Transport(c.net.Node(v.Self))
	if c.meter != nil {
		t = c.meter.Wrap(t)
	}
	return &Job{View: v, Transport: t, Leave: func() error { return nil }}, nil
}

func (inMemory) Diagnose(context.Context, JobFlags, World) ([]Finding, error) {
	return []Finding{{Node: "0", Check: "round trip", OK: true, Detail: "1ms"},
		{Node: "1", Check: "clock", Detail: "is 3 minutes ahead",
			Remedy: "start an NTP client"}}, nil
}

func (inMemory) Serve(string, func() []Sample) (func() error, string, error) {
	return nil, "", errors.New("address in use")
}

// gather runs a command line with workers that are goroutines.
func gather(t *testing.T, c inMemory, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.t = t
	status := Main(t.Context(), args, &stdout, &stderr, Extras{Cluster: c})
	return outcome{status, stdout.String(), notices.ReplaceAllString(stderr.String(), "")}
}

// TestWorkerFlags: flags that need other processes say so, and those that contradict each
// other.
func TestWorkerFlags(t *testing.T) {
	inDir(t)
	for want, args := range map[string][]string{
		"--local needs gomem-cluster, which takes the same flags: go run ./cmd/gomem-cluster " +
			"train --local 4": {"train", "--local", "4"},
		"--sync needs gomem-cluster": {"train", "--sync", "pf"},
		"--etcd needs gomem-cluster": {"train", "--etcd", "http://a:2379"},
		"want a rate in bits a second such as 200Mbps": {"train", "--local", "2", "--bandwidth",
			"fast"},
	} {
		if o := invoke(t, args...); o.status != exitUsage || !strings.Contains(o.stderr, want) {
			t.Errorf("%v: %d, %q", args, o.status, o.stderr)
		}
	}
	for want, args := range map[string][]string{
		"--local 257: at most 256 workers are started":       {"--local", "257"},
		"--local and --workers can't be used together":       {"--local", "2", "--workers", "2"},
		"--min 3 is more than --local 2":                     {"--local", "2", "--min", "3"},
		"--rank needs --workers N":                           {"--rank", "1"},
		"--max 2 is less than --min 3":                       {"--min", "3", "--max", "2"},
		"--etcd 2: etcd is in 1 worker or in 3":              {"--local", "4", "--etcd", "2"},
		"--etcd 3 needs as many workers: there are 2":        {"--local", "2", "--etcd", "3"},
		"--insecure needs --tls off":                         {"--insecure"},
		"--lease: \"1s\": want whole seconds from 2s to 10m": {"--local", "2", "--lease", "1s"},
		"--sync does nothing for one worker":                 {"--sync", "ring"},
		"there is no scheme \"tree\": there are ring, ps,":   {"--local", "2", "--sync", "tree"},
		"--rule adam is for gradients, which mlr and mf": {"--local", "2", "--sync", "ssp",
			"--rule", "adam"},
		"no order \"best\": there are random": {"--local", "2", "--sync", "bosen", "--order",
			"best"},
		"--mtbf does nothing for --model mf": {"--model", "mf", "--mtbf", "1h"},
		"--rotate-every does nothing for --model transformer": {"--local", "2", "--sync", "orpheus",
			"--rotate-every", "5"},
		"scheme ssp has no use for option delay": {"--local", "2", "--sync", "ssp", "--delay", "9"},
		"async has no use for option aggregators": {"--local", "2", "--sync", "async",
			"--aggregators", "0"},
		"ssp has no use for option replicas": {"--local", "2", "--sync", "ssp", "--replicas", "1"},
		"a divergence is of replicas": {"--local", "2", "--sync", "fabric", "--divergence",
			"9"},
		"a divergence of \"norm:-1\": give a number of updates": {"--local", "2", "--sync",
			"fabric", "--replicas", "1", "--divergence", "norm:-1"},
		"a divergence of \"0\": give a": {"--local", "2", "--sync", "fabric", "--replicas", "1",
			"--divergence", "0"},
		"rule momentum:0.9 has no replicas": {"--local", "2", "--sync", "fabric", "--replicas", "1",
			"--rule", "momentum:0.9"},
		"--replicas does nothing for --model mlr": {"--model", "mlr", "--local", "2", "--sync",
			"fabric", "--replicas", "1"},
		"ring has no use for option delay": {"--local", "2", "--delay", "9"},
		"--rule adadelay:2 is for gradients, which mlr and mf": {"--local", "2", "--sync", "fabric",
			"--rule", "adadelay:2"},
		"ring has no use for option staleness": {"--local", "2", "--staleness", "1"},
		"hybrid has no use for option bandwidth:": {"--local", "2", "--sync", "hybrid",
			"--bandwidth", "1Mbps", "--filter", "fp16"},
	} {
		o := gather(t, inMemory{}, with(tiny, args...)...)
		if o.status != exitUsage || !strings.Contains(o.stderr, want) {
			t.Errorf("%v: %d, %q, want %q", args, o.status, o.stderr, want)
		}
	}
}

// TestBitRates: rates are read as people write them.
func TestBitRates(t *testing.T) {
	for text, want := range map[string]bitRate{"200Mbps": 2e8, "1.5 Gbps": 1.5e9, "800kbps": 8e5,
		"5000bps": 5e3, "1tbps": 1e12} {
		var r bitRate
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "bps", "200", "200MB/s", "-1Mbps", "NaNMbps", "1bps", "k"} {
		if err := new(bitRate).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a rate", text)
		}
	}
}

// TestLeases: leases are whole seconds, not too few nor too many, and reach who joins.
func TestLeases(t *testing.T) {
	var l lease
	for text, want := range map[string]time.Duration{"2s": 2 * time.Second,
		"1m30s": 90 * time.Second, "10m": 10 * time.Minute, "5000ms": 5 * time.Second} {
		err := l.UnmarshalText([]byte(text))
		if got := (meetFlags{Lease: l}).flags().Lease; err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5", "1s", "2.5s", "10m1s", "-5s", "soon", "9999999h"} {
		if err := l.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a lease", text)
		}
	}
}

// TestDoctor: findings are a table with what to do, or JSON, and what is bad is a failure.
func TestDoctor(t *testing.T) {
	o := gather(t, inMemory{}, "doctor")
	for _, want := range []string{"node  check       ", "1     clock       bad  is 3 minutes ahead",
		"node 1, clock: start an NTP client", "2 checks, 1 of them bad"} {
		if o.status != exitFailure || o.stderr != "" || !strings.Contains(o.stdout, want) {
			t.Errorf("%d, %q, no %q in\n%s", o.status, o.stderr, want, o.stdout)
		}
	}
	if o := gather(t, inMemory{}, "doctor", "--json"); o.status != exitFailure ||
		!strings.HasPrefix(o.stdout, `{"type":"doctor","findings":[{"node":"0",`) {
		t.Error(o)
	}
	refuse(t, "doctor needs gomem-cluster", "doctor")
	for _, program := range []Extras{{}, {Name: "gomem-cluster", Cluster: inMemory{}}} {
		var b bytes.Buffer
		Main(t.Context(), []string{"--help"}, &b, &b, program)
		Main(t.Context(), []string{"train", "--help"}, &b, &b, program)
		for _, word := range []string{"doctor", "--staleness", "Several workers"} {
			if has := strings.Contains(b.String(), word); has != (program.Cluster != nil) {
				t.Errorf("the help of %s: %s is there: %v", program.name(), word, has)
			}
		}
	}
}

// TestLocalShares: of workers that are started here the first reads for all, whatever is
// learnt from; one that asks for other data is told so.
func TestLocalShares(t *testing.T) {
	inDir(t)
	for _, model := range []string{"gpt", "transformer"} {
		data := map[string]string{"gpt": "text:pairs.tsv", "transformer": "tsv:pairs.tsv"}[model]
		run := []string{"train", "--model", model, "--size", "s512", "--data", data, "--steps", "1",
			"--bleu", "0", "--local", "2", "--json"}
		if model == "gpt" {
			run = slices.DeleteFunc(run, func(s string) bool { return s == "--bleu" || s == "0" })
		}
		summaryOf(t, gather(t, inMemory{}, run...))
		other := inMemory{args: func(rank int) []string {
			return [][]string{nil, {"--eval-share", "0.3"}}[rank]
		}}
		o := gather(t, other, run...)
		if o.status != exitFailure || strings.Count(o.stderr, "\n") != 1 ||
			!strings.Contains(o.stderr, "start all workers with the same flags and version") {
			t.Errorf("%s: %+v", model, o)
		}
	}
	g := given{}
	if err := g.unpack([]byte("nonsense"), "this"); err == nil || g.tokenizer != nil {
		t.Error(err)
	}
}

// TestLocalHostMemory: a budget that exchanging does not leave anything of is refused by its
// name.
func TestLocalHostMemory(t *testing.T) {
	inDir(t)
	o := gather(t, inMemory{}, with(tiny, "--local", "2", "--host-memory", "1KiB")...)
	line, _, _ := strings.Cut(o.stderr, "\n")
	if o.status != exitUsage || !strings.Contains(line, "--host-memory 1KiB: what the workers "+
		"exchange takes ") || !strings.Contains(line, ": give it more than 9") {
		t.Errorf("%+v", o)
	}
}
