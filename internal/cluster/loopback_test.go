package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/internal/command"
	"github.com/gomem/gomem/internal/longtest"
)

// TestLoopbackMasters: processes of one machine meet at whatever address of loopback process 0
// is to be, encrypted or not.
func TestLoopbackMasters(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	for _, host := range []string{"127.0.0.1", "127.0.1.1", "::1", "localhost"} {
		for _, tls := range []string{"off", "auto"} {
			t.Run(host+" "+tls, func(t *testing.T) {
				l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
				if err != nil {
					t.Skip(err)
				}
				_, port, _ := net.SplitHostPort(l.Addr().String())
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				f := command.JobFlags{Workers: 2, Master: net.JoinHostPort(host, port), TLS: tls,
					TokenFile: t.TempDir() + "/token"}
				mustMeet(t, f)
			})
		}
	}
}

// mustMeet demands that two processes with these flags have a view of both.
func mustMeet(t *testing.T, f command.JobFlags) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	type met struct {
		job *command.Job
		err error
	}
	both := make(chan met)
	for rank := range 2 {
		f := f
		f.Rank = &rank
		go func() {
			job, err := Cluster{}.Join(ctx, f, command.World{}, func(string) {},
				slog.New(slog.DiscardHandler))
			if err == nil && len(job.View.Nodes) != 2 {
				err = fmt.Errorf("a view of %+v", job.View)
			}
			both <- met{job, err}
		}()
	}
	var jobs []*command.Job
	var nodes []distrib.Node
	for range 2 {
		m := <-both
		if m.err != nil {
			t.Error(m.err)
			cancel() // the other waits in vain
			continue
		}
		jobs, nodes = append(jobs, m.job), m.job.View.Nodes
	}
	for _, n := range nodes {
		c, err := net.Dial("tcp", n.Addr)
		if err != nil {
			t.Error(err)
			continue
		}
		c.Close()
	}
	left := make(chan error)
	for _, job := range jobs {
		go func() {
			err := job.Transport.Close()
			if e := job.Leave(); err == nil {
				err = e
			}
			left <- err
		}()
	}
	for range jobs {
		if err := <-left; err != nil {
			t.Error(err)
		}
	}
}
