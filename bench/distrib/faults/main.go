//go:build linux

// Command faults does harm to jobs of gomem-cluster that train, and prints what becomes of
// them: after how long a job ends, whom it names, and how many steps are lost.
//
//	go run ./bench/distrib/faults
//	go run ./bench/distrib/faults -schemes ring
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	schemes := flag.String("schemes", "ring,bosen,pf", "`names` of ways to keep in step")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, strings.Split(*schemes, ","), faults()); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

// fault is what is done to a process of a job, and how long after that it is undone.
type fault struct {
	name   string
	rank   int
	signal syscall.Signal
	undo   syscall.Signal // 0: nothing is
	after  time.Duration
}

func faults() []fault {
	return []fault{
		{"a worker is killed", 1, syscall.SIGKILL, 0, 0},
		{"rank 0 is killed, with etcd in it", 0, syscall.SIGKILL, 0, 0},
		{"a worker is stopped for 3 s", 1, syscall.SIGSTOP, syscall.SIGCONT, 3 * time.Second},
		{"a worker is stopped for good", 1, syscall.SIGSTOP, 0, 0},
		{"a worker is asked to end", 1, syscall.SIGTERM, 0, 0},
	}
}

// run builds the program and prints the table.
func run(ctx context.Context, w io.Writer, schemes []string, faults []fault) error {
	dir, err := os.MkdirTemp("", "gomem-faults-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "gomem-cluster")
	build := exec.CommandContext(ctx, "go", "build", "-o", program,
		"github.com/gomem/gomem/cmd/gomem-cluster")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	fmt.Fprintln(w, "| scheme | fault | the job | after, s | steps lost | what is said last |")
	fmt.Fprintln(w, "|---|---|---|---:|---:|---|")
	for _, scheme := range schemes {
		for _, f := range faults {
			o, err := suffer(ctx, program, filepath.Join(dir, "run"), scheme, f)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", scheme, f.name, err)
			}
			fmt.Fprintf(w, "| %s | %s | %s | %.1f | %d | %s |\n", scheme, f.name, o.end,
				o.after.Seconds(), o.lost, o.said)
		}
	}
	return nil
}
