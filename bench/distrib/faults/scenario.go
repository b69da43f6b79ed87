//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// scenario is a fault of a kind of job.
type scenario struct {
	kind kind
	name string
	harm func(*stage) error // returns when it is undone, if it is
}

// kind is what a job has of its own. All have three workers, unless they say so.
type kind struct {
	name   string
	local  int  // workers of the launcher; 0: three
	again  bool // the launcher starts workers again that have failed
	min    int  // workers with which it goes on; 0: all
	within bool // etcd is in all of the workers, and not in the first alone
	beside int  // processes of an etcd beside the job; 0: none is
	single bool // workers are started one by one, and not by a launcher
	apart  bool // each worker is on a node of its own; implies single
	small  bool // the disk is small
}

// args are the command line's.
func (k kind) args(urls string) (args []string) {
	if k.min > 0 {
		args = append(args, "--min", fmt.Sprint(k.min))
	}
	if k.again {
		args = append(args, "--restarts", "1000000")
	}
	switch {
	case k.within:
		args = append(args, "--etcd", "3")
	case k.beside > 0:
		args = append(args, "--etcd", urls)
	}
	return args
}

// missing is what this machine lacks for a scenario.
func (s scenario) missing() string {
	if (s.kind.apart || s.kind.small) && os.Geteuid() != 0 {
		return "it needs root"
	}
	if _, err := exec.LookPath("tc"); s.kind.apart && err != nil {
		return "it needs ip and tc"
	}
	return ""
}

// stops are how long processes are stopped.
func stops() []time.Duration {
	return []time.Duration{3 * time.Second, 8 * time.Second, 12 * time.Second, 15 * time.Second,
		25 * time.Second, 40 * time.Second}
}

// cutFor is how long a link is cut, slow or lossy.
const cutFor = 20 * time.Second

func scenarios() []scenario {
	plain := kind{name: "all are needed"}
	fewer := kind{name: "two are enough", min: 2}
	within := kind{name: "two are enough, three of etcd in them", min: 2, within: true}
	beside := kind{name: "two are enough, three of etcd beside", min: 2, beside: 3}
	var all []scenario
	for _, k := range []kind{plain, fewer, within} {
		all = append(all,
			scenario{k, "rank 0 is killed", kill(ranks(0), syscall.SIGKILL)},
			scenario{k, "another is killed", kill(ranks(1), syscall.SIGKILL)},
			scenario{k, "another is asked to end", kill(ranks(1), syscall.SIGTERM)},
			scenario{k, "another is stopped for good", kill(ranks(1), syscall.SIGSTOP)})
	}
	all = append(all,
		scenario{within, "rank 0 is asked to end", kill(ranks(0), syscall.SIGTERM)},
		scenario{beside, "rank 0 and etcd's leader are killed",
			kill(both(ranks(0), leader), syscall.SIGKILL)})
	for _, d := range stops() {
		all = append(all,
			scenario{within, fmt.Sprintf("rank 0 is stopped for %v", d), stop(ranks(0), d)},
			scenario{within, fmt.Sprintf("another is stopped for %v", d), stop(ranks(1), d)},
			scenario{beside, fmt.Sprintf("etcd's leader is stopped for %v", d), stop(leader, d)})
	}
	return append(all, more()...)
}

// more are what is not done by signals.
func more() []scenario {
	lone := kind{name: "two are enough, one of etcd beside", min: 2, beside: 1}
	single := kind{name: "two are enough, started one by one", min: 2, within: true, single: true}
	apart := kind{name: "two are enough, each on a node", min: 2, within: true, single: true,
		apart: true}
	small := kind{name: "two are enough, on a small disk", min: 2, within: true, small: true}
	all := []scenario{
		{small, "the disk is full for 10s", fill(10 * time.Second)},
		{single, "a worker comes late", late},
		{single, "a worker comes with a wrong token", hostile},
	}
	for _, d := range []time.Duration{2 * time.Second, 4 * time.Second, 12 * time.Second,
		time.Minute} {
		all = append(all, scenario{lone, fmt.Sprintf("etcd is away for %v", d), away(d)})
	}
	for _, who := range []struct {
		name string
		rank int
	}{{"rank 0", 0}, {"another", 2}} {
		all = append(all,
			scenario{apart, who.name + " is not heard for 20s", lose(who.rank, 1, 0)},
			scenario{apart, who.name + " does not hear for 20s", lose(who.rank, 0, 1)},
			scenario{apart, who.name + " is cut off for 20s", lose(who.rank, 1, 1)})
	}
	return append(all,
		scenario{apart, "a link has 1 Mbit/s for 20s", slow(2, 1e6)},
		scenario{apart, "a link loses 5 % for 20s", lose(2, 0.05, 0.05)},
		scenario{apart, "a link loses 30 % for 20s", lose(2, 0.3, 0.3)})
}
