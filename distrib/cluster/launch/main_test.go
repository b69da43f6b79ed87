package launch_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib/cluster/launch"
)

// roleVar makes this test's executable a process of a job, and holdVar is an address that
// it keeps a connection to as long as it lives.
const (
	roleVar = "GOMEM_TEST_ROLE"
	holdVar = "GOMEM_TEST_HOLD"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

// play is what a process of a job does.
func play(role string) int {
	w, err := launch.Find(launch.System(), launch.Flags{})
	if err != nil {
		fmt.Println(err)
		return 2
	}
	switch role {
	case "find":
		fmt.Printf("%s %d/%d local %d/%d at %s\n", w.Launcher, w.Rank, w.Size, w.Local,
			w.LocalSize, w.Master)
	case "speak":
		for i := range 100 {
			fmt.Printf("line %d of %d\n", i, w.Rank)
		}
		for _, public := range append(os.Args, os.Environ()...) {
			if strings.Contains(public, "hush") {
				fmt.Println("the secret is in", public)
			}
		}
		token, err := os.ReadFile(os.Getenv(launch.TokenFile))
		fmt.Fprint(os.Stderr, "the token is ", string(token), err)
	case "third fails":
		if w.Rank == 2 {
			return 3
		}
		time.Sleep(time.Minute)
	case "warned": // that the second one fails
		if w.Rank == 1 {
			return 3
		}
		failed, _ := launch.Heed(launch.System(), os.Stdin)
		<-failed
		fmt.Println("is told")
	case "first fails":
		if w.Rank == 0 {
			return 1
		}
		time.Sleep(time.Minute)
	case "first ends": // well, and nobody else does
		if w.Rank > 0 {
			signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
			hold()
			time.Sleep(time.Minute)
		}
		hold()
	case "some fail": // and the others end well after that
		if w.Rank == 2 || w.Rank == 3 {
			return w.Rank
		}
		<-hold()
	case "deaf": // to SIGTERM
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
		released := hold()
		if w.Rank == 0 {
			<-released
			return 4
		}
		time.Sleep(time.Minute)
	case "heed": // signals
		arrived := make(chan os.Signal, 1)
		signal.Notify(arrived, os.Interrupt)
		hold()
		fmt.Println(<-arrived)
	case "fail on a signal": // if it is the first
		arrived := make(chan os.Signal, 1)
		signal.Notify(arrived, os.Interrupt)
		hold()
		<-arrived
		if w.Rank == 0 {
			return 1
		}
	case "orphan":
		hold()
		_, gone := launch.Heed(launch.System(), os.Stdin)
		<-gone
	case "hold":
		hold()
		time.Sleep(time.Minute)
	case "parent of hold", "parent of orphan":
		_ = launch.Local(context.Background(), launch.Job{N: 2,
			Env: []string{roleVar + "=" + role[len("parent of "):]}})
	}
	return 0
}

// hold says hello to who wants to know whether this process lives; what it returns is
// closed when they hang up.
func hold() (released chan struct{}) {
	conn, err := net.Dial("tcp", os.Getenv(holdVar))
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(conn, os.Getpid())
	released = make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		close(released)
	}()
	return released
}
