//go:build linux

// Command faults does harm to jobs of gomem-cluster that train, and prints what becomes of them:
// whether a job goes on, how long it stands still, after how long it names whom, how many steps
// are made twice, and whether a checkpoint is set back.
//
//	go run ./bench/distrib/faults
//	go run ./bench/distrib/faults -tries 20 -only stopped
//	go run ./bench/distrib/faults -schemes ring,bosen,pf -only 'three of etcd'
//	go run ./bench/distrib/faults -kills 2000
//
// Links that are cut, slow or lossy are those of network namespaces, and disks that are full are
// in memory: both need root, and are left out without.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/gomem/gomem/bench/internal/lab"
)

func main() {
	if text := os.Getenv(serverVariable); text != "" {
		if err := serve(text); err != nil {
			fmt.Fprintln(os.Stderr, "etcd:", err)
			os.Exit(1)
		}
		return
	}
	schemes := flag.String("schemes", "ring", "`names` of ways to keep in step")
	only := flag.String("only", "", "`pattern` of the faults, or of their jobs")
	kills := flag.Int("kills", 0, "`times` that a worker of four is killed, of one job, whose "+
		"weights are compared with those of a job without a fault")
	o := options{out: os.Stdout}
	flag.BoolVar(&o.lines, "lines", false, "print all that a job has said, and when")
	flag.IntVar(&o.tries, "tries", 1, "`times` that a fault is made")
	flag.IntVar(&o.atOnce, "at-once", 1, "`jobs` that are harmed at the same time")
	flag.Parse()
	o.schemes = strings.Split(*schemes, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	some, err := regexp.Compile(*only)
	if err == nil {
		o.scenarios = matching(some, scenarios())
		err = lab.Built(ctx, func(program, dir string) error {
			if *kills > 0 {
				return killed(ctx, os.Stdout, program, dir, *kills)
			}
			return run(ctx, o, program, dir)
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

// options are what is to be done.
type options struct {
	out           io.Writer
	scenarios     []scenario
	schemes       []string
	tries, atOnce int
	lines         bool
}

func matching(some *regexp.Regexp, all []scenario) (chosen []scenario) {
	for _, s := range all {
		if some.MatchString(s.kind.name + ": " + s.name) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// run prints a table.
func run(ctx context.Context, o options, program, dir string) error {
	fmt.Fprint(o.out, heading)
	for _, s := range o.scenarios {
		for _, scheme := range o.schemes {
			if reason := s.missing(); reason != "" {
				fmt.Fprintf(os.Stderr, "left out: %s: %s\n", s.name, reason)
				continue
			}
			tries, err := repeat(ctx, o, program, dir, s, scheme)
			if err != nil {
				return fmt.Errorf("%s, %s, %s: %w", s.kind.name, s.name, scheme, err)
			}
			fmt.Fprint(o.out, row(s, scheme, tries))
			for _, t := range tries {
				if o.lines {
					fmt.Fprint(o.out, t.lines)
				}
			}
		}
	}
	return nil
}

// repeat makes a fault as often as was asked for, some at the same time.
func repeat(ctx context.Context, o options, program, dir string, s scenario, scheme string) (
	[]outcome, error) {
	outcomes, errs := make([]outcome, o.tries), make([]error, o.tries)
	places := make(chan int, o.atOnce)
	for i := range o.atOnce {
		places <- i
	}
	var all sync.WaitGroup
	for i := range o.tries {
		all.Go(func() {
			place := <-places
			defer func() { places <- place }()
			if ctx.Err() != nil {
				return
			}
			own := filepath.Join(dir, fmt.Sprint("try", place))
			g := &stage{ctx: ctx, program: program, dir: own, kind: s.kind, scheme: scheme}
			outcomes[i], errs[i] = g.suffer(s)
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("try %d: %w", i, err)
		}
	}
	return outcomes, ctx.Err()
}
