//go:build linux

package main

import (
	"context"
	"encoding/json"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// external is an etcd that is no job's, in this process, and a client of it.
func external(t *testing.T) (at string, c *clientv3.Client) {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir = t.TempDir()
	here := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{here}, []url.URL{here}
	cfg.ListenPeerUrls = nil
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	at = "http://" + e.Clients[0].Addr().String()
	c, err = clientv3.New(clientv3.Config{Endpoints: []string{at}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return at, c
}

// below is what an etcd has below a key, by the rest of the keys; the oldest first.
func below(t *testing.T, c *clientv3.Client, key string) (names, values []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := c.Get(ctx, key, clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range r.Kvs {
		names = append(names, strings.TrimPrefix(string(kv.Key), key))
		values = append(values, string(kv.Value))
	}
	return names, values
}

// leader is the rank that leads a job, -1 while none does.
func leader(t *testing.T, c *clientv3.Client, job string) int {
	t.Helper()
	_, leads := below(t, c, job+"lead/rendezvous/")
	ranks, nodes := below(t, c, job+"node/")
	for i, node := range nodes {
		var n struct{ Host, Addr string }
		if err := json.Unmarshal([]byte(node), &n); err != nil || n.Addr == "" {
			t.Fatal(node, err)
		}
		if len(leads) > 0 && leads[0] == n.Host+" "+n.Addr {
			rank, err := strconv.Atoi(ranks[i])
			if err != nil {
				t.Fatal(err)
			}
			return rank
		}
	}
	return -1
}

// TestExternal: a job whose etcd is beside it goes on without its first worker, and then without
// the one that leads; another leads. When it has ended, the etcd is there, and nobody in it.
func TestExternal(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	at, c := external(t)
	dir := t.TempDir()
	j := start(t, dir, "--local", "3", "--etcd", at, "--job", "outer", "--min", "1", "--steps",
		"100000", "--save", "run", "--save-every", "5")
	const job = "/gomem/outer/"
	run := filepath.Join(dir, "run")
	goOn := func(n int) {
		t.Helper()
		until(t, j, strconv.Itoa(n)+" go on", func() bool {
			c, err := train.Inspect(run)
			return err == nil && max(c.Workers, 1) == n
		})
	}
	goOn(3)
	left := []int{0, 1, 2}
	kill := func(rank int) {
		t.Helper()
		if err := syscall.Kill(j.worker(t, rank), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for i, r := range left {
			if r == rank {
				left = append(left[:i:i], left[i+1:]...)
				break
			}
		}
		goOn(len(left))
	}
	kill(0)
	second := leader(t, c, job)
	if second < 1 {
		t.Fatalf("%d leads, and %v are there", second, left)
	}
	kill(second)
	if third := leader(t, c, job); third != left[0] {
		t.Errorf("%d leads, and %v is there", third, left)
	}
	if err := j.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status, said := j.end(), j.stderr.String(); status != 0 ||
		!strings.Contains(said, "gomem: stopped after step ") {
		t.Errorf("status %d: %s", status, said)
	}
	if nodes, _ := below(t, c, job+"node/"); len(nodes) > 0 {
		t.Errorf("nodes %v are left", nodes)
	}
	if leads, _ := below(t, c, job+"lead/"); len(leads) > 0 {
		t.Errorf("%v are left", leads)
	}
}
