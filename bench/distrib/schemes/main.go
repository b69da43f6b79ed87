// Command schemes trains models by every scheme in which workers of gomem-cluster may keep in step,
// each in a network namespace of its own, and prints what each sends, how long a step takes, and
// what has been learnt: the tables of docs/schemes.md.
//
//	go run ./bench/distrib/schemes
//	go run ./bench/distrib/schemes -mbit 1000 -models resnet -schemes 'ring|pf.*'
//
// All make the same number of steps, of the model's own batch and learning rate; a worker alone is
// for comparison. The links have a rate both ways. It needs root, and the programs ip and tc.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gomem/gomem/bench/internal/lab"
	"github.com/gomem/gomem/internal/workers"
)

// options are what is to be compared.
type options struct {
	workers, steps int
	mbit           float64
	models         []string
	schemes        *regexp.Regexp
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.IntVar(&o.workers, "workers", 4, "`number` of workers")
	flag.IntVar(&o.steps, "steps", 40, "`number` of steps that each makes")
	flag.Float64Var(&o.mbit, "mbit", 100, "`rate` of each worker's link in Mbit/s, both ways")
	models := flag.String("models", "resnet,moe,transformer", "`names` of models, of size s512")
	schemes := flag.String("schemes", "", "`pattern` of schemes, with their options")
	flag.Parse()
	o.models = strings.Split(*models, ",")
	var err error
	if o.schemes, err = regexp.Compile("^(" + *schemes + ")"); err == nil {
		err = run(ctx, o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "schemes:", err)
		os.Exit(1)
	}
}

// schemes are those that there are, with options where their own choice is not all that one would
// compare.
func schemes() [][]string {
	var all [][]string
	for _, name := range workers.Schemes() {
		all = append(all, []string{name})
		if name == "pf" {
			all = append(all, []string{name, "--filter", "dvf:1e-3"})
		}
	}
	return all
}

const heading = "| scheme | MiB a step | ms a step | held-out loss | exchange, MiB |\n" +
	"|---|---:|---:|---:|---:|\n"

// run prints a table for each model.
func run(ctx context.Context, o options, out io.Writer) error {
	return lab.Built(ctx, func(program, _ string) error {
		for i, model := range o.models {
			if i > 0 {
				fmt.Fprintln(out)
			}
			t := trial{ctx: ctx, options: o, program: program, model: model}
			if err := t.table(out); err != nil {
				return err
			}
		}
		return nil
	})
}

// table prints a row for each scheme.
func (t *trial) table(out io.Writer) error {
	fmt.Fprintf(out, "### %s\n\n%s", t.model, heading)
	if err := t.row(out, nil); err != nil {
		return err
	}
	for _, s := range schemes() {
		if !t.schemes.MatchString(strings.Join(s, " ")) {
			continue
		}
		if err := t.row(out, s); err != nil {
			return err
		}
	}
	return nil
}

// trial is one model's.
type trial struct {
	options
	ctx            context.Context
	program, model string
}

// row trains by a scheme, and prints what came of it; nil is one worker alone.
func (t *trial) row(out io.Writer, scheme []string) error {
	name := strings.Join(scheme, " ")
	var s summary
	var err error
	if name == "" {
		name = "one worker alone"
		s, err = t.alone()
	} else {
		s, err = t.together(scheme)
	}
	if err != nil {
		return fmt.Errorf("%s, %s: %w", t.model, name, err)
	}
	steps := float64(s.Steps * max(s.Workers, 1))
	fmt.Fprintf(out, "| %s | %s | %.0f | %.3f | %s |\n", name,
		mebibytes(float64(s.Exchanged.Sent)/steps), s.StepTime, s.Loss,
		mebibytes(float64(s.Exchanged.Memory)))
	return nil
}

func mebibytes(n float64) string { return strconv.FormatFloat(n/(1<<20), 'f', 2, 64) }

// summary is what a run says last.
type summary struct {
	Type      string  `json:"type"`
	Steps     int     `json:"steps"`
	StepTime  float64 `json:"step_ms_median"`
	Loss      float64 `json:"eval_loss"`
	Workers   int     `json:"workers"`
	Exchanged struct {
		Sent   int64 `json:"sent_bytes"` // by all workers
		Memory int64 `json:"memory_bytes"`
	} `json:"exchanged"`
}

// args are those of every worker.
func (t *trial) args(more ...string) []string {
	return append([]string{"train", "--model", t.model, "--size", "s512", "--steps",
		strconv.Itoa(t.steps), "--eval-every", strconv.Itoa(t.steps), "--json"}, more...)
}

func (t *trial) alone() (summary, error) {
	return last(t.ended(exec.CommandContext(t.ctx, t.program, t.args()...)))
}

// together trains in namespaces of which each has one worker.
func (t *trial) together(scheme []string) (s summary, err error) {
	l, err := lab.New(t.ctx, t.workers, 1e6*t.mbit)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	all := make(chan error, t.workers)
	for rank := range t.workers {
		args := t.args("--workers", strconv.Itoa(t.workers), "--rank", strconv.Itoa(rank),
			"--master", l.Addr(0)+":7070", "--tls", "off", "--insecure", "--sync")
		c := l.Exec(t.ctx, rank, t.program, append(args, scheme...)...)
		go func() {
			text, err := t.ended(c)
			if rank == 0 && err == nil {
				s, err = last(text, nil)
			}
			all <- err
		}()
	}
	for range t.workers {
		err = errors.Join(err, <-all)
	}
	return s, err
}

// ended is what a process prints, within ten minutes.
func (t *trial) ended(c *exec.Cmd) (string, error) {
	var said strings.Builder
	c.Stderr, c.WaitDelay = &said, time.Second
	late := time.AfterFunc(10*time.Minute, func() { _ = c.Process.Kill() })
	defer late.Stop()
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, said.String())
	}
	return string(out), nil
}

// last is the summary at the end of what a run has printed.
func last(text string, err error) (s summary, _ error) {
	if err != nil {
		return s, err
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil || s.Type != "summary" {
		return s, fmt.Errorf("no summary in %q: %w", lines[len(lines)-1], err)
	}
	return s, nil
}
