//go:build linux

// Command faults does harm to jobs of gomem-cluster that train, and prints what becomes of
// them: after how long a job ends, whom it names, and how many steps are lost.
//
//	go run ./bench/distrib/faults
//	go run ./bench/distrib/faults -schemes ring
//	go run ./bench/distrib/faults -min 2
//	go run ./bench/distrib/faults -min 2 -etcd 3
//	go run ./bench/distrib/faults -min 2 -within
//	go run ./bench/distrib/faults -min 2 -only stopped -lines
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
	if text := os.Getenv(serverVariable); text != "" {
		if err := serve(text); err != nil {
			fmt.Fprintln(os.Stderr, "etcd:", err)
			os.Exit(1)
		}
		return
	}
	schemes := flag.String("schemes", "ring,bosen,pf", "`names` of ways to keep in step")
	var k kind
	flag.IntVar(&k.min, "min", 0, "`workers` of three with which a job goes on; 0: all")
	flag.IntVar(&k.etcd, "etcd", 0, "`processes` of an etcd beside the job; 0: it is in rank 0")
	flag.BoolVar(&k.within, "within", false, "etcd is in the three workers of the job itself")
	flag.StringVar(&k.only, "only", "", "what a fault's `name` has in it; else it is not tried")
	flag.BoolVar(&k.lines, "lines", false, "print what a job has said, and how long after the harm")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, k, strings.Split(*schemes, ","), faults(k)); err != nil {
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

// kind is what a job has of its own.
type kind struct {
	min  int // workers with which it goes on; 0: all
	etcd int // processes of an etcd beside it; 0: it is in rank 0
	// within says that etcd is in all of the job's workers.
	within bool
	only   string // what the names of faults that are tried have in them
	lines  bool   // what is said is printed
}

// args are the command line's.
func (k kind) args(urls string) (args []string) {
	if k.min > 0 {
		args = append(args, "--min", fmt.Sprint(k.min))
	}
	if k.etcd > 0 {
		args = append(args, "--etcd", urls)
	}
	if k.within {
		args = append(args, "--etcd", "3")
	}
	return args
}

// The ranks of what is no worker: etcd's leader, that together with rank 0, and one that comes
// with another token than the job's.
const etcdLeader, leaders, stranger = -1, -2, -3

func faults(k kind) []fault {
	if k.within {
		return []fault{
			{"rank 0 is killed", 0, syscall.SIGKILL, 0, 0},
			{"rank 0 is stopped for good", 0, syscall.SIGSTOP, 0, 0},
			{"another worker is killed", 1, syscall.SIGKILL, 0, 0},
			{"rank 0 is asked to end", 0, syscall.SIGTERM, 0, 0},
			{"a worker comes with a wrong token", stranger, 0, 0, 0},
		}
	}
	if k.etcd > 0 {
		return []fault{
			{"rank 0 is killed", 0, syscall.SIGKILL, 0, 0},
			{"rank 0 is asked to end", 0, syscall.SIGTERM, 0, 0},
			{"etcd's leader is killed", etcdLeader, syscall.SIGKILL, 0, 0},
			{"rank 0 and etcd's leader are killed", leaders, syscall.SIGKILL, 0, 0},
			{"a worker is stopped for good", 1, syscall.SIGSTOP, 0, 0},
		}
	}
	return []fault{
		{"a worker is killed", 1, syscall.SIGKILL, 0, 0},
		{"rank 0 is killed, with etcd in it", 0, syscall.SIGKILL, 0, 0},
		{"a worker is stopped for 3 s", 1, syscall.SIGSTOP, syscall.SIGCONT, 3 * time.Second},
		{"a worker is stopped for good", 1, syscall.SIGSTOP, 0, 0},
		{"a worker is asked to end", 1, syscall.SIGTERM, 0, 0},
	}
}

// run builds the program and prints the table.
func run(ctx context.Context, w io.Writer, k kind, schemes []string, faults []fault) error {
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
			if !strings.Contains(f.name, k.only) {
				continue
			}
			harm := suffer
			if f.rank == stranger {
				harm = refuse
			}
			o, err := harm(ctx, program, dir, k, scheme, f)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", scheme, f.name, err)
			}
			fmt.Fprintf(w, "| %s | %s | %s | %.1f | %d | %s |\n", scheme, f.name, o.end,
				o.after.Seconds(), o.lost, o.said)
			if k.lines {
				fmt.Fprint(w, o.lines)
			}
		}
	}
	return nil
}
