package control

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// one is a configuration of one embedded server.
func one(t *testing.T) Config {
	t.Helper()
	return Config{Job: "test", Servers: []Server{{Client: "127.0.0.1:0"}}, Wait: 20 * time.Second}
}

func start(t *testing.T, cfg Config) *Control {
	t.Helper()
	c, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// joinable is the configuration of a node that uses the server of another.
func joinable(c *Control, rank int) Config {
	cfg := c.cfg
	cfg.Servers = []Server{{Client: strings.TrimPrefix(c.ends[0], "http://")}}
	cfg.Rank, cfg.Dir = rank, ""
	return cfg
}

// TestStart embeds a server, and another node uses it.
func TestStart(t *testing.T) {
	t.Parallel()
	from := time.Now()
	a := start(t, one(t))
	t.Logf("one server: %v", time.Since(from).Round(time.Millisecond))
	from = time.Now()
	b := start(t, joinable(a, 1))
	t.Logf("a client: %v", time.Since(from).Round(time.Millisecond))
	ctx := context.Background()
	if err := a.Put(ctx, "x/y", []byte("value")); err != nil {
		t.Fatal(err)
	}
	got, err := b.Get(ctx, "x/y")
	if err != nil || string(got) != "value" {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := b.Get(ctx, "x"); !errors.Is(err, ErrNoKey) {
		t.Fatalf("a key that was not put: %v", err)
	}
}
