package collective

import (
	"context"
	"hash/fnv"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// lender is a transport that keeps what it was lent for some time after it has arrived, and
// counts what has changed meanwhile.
type lender struct {
	distrib.Transport
	changed atomic.Int64
}

func (l *lender) Send(to distrib.NodeID, m *distrib.Msg) {
	if done := m.Done; done != nil {
		body := slices.Clone(m.Body)
		before := sum(body)
		m.Done = func(err error) {
			time.AfterFunc(300*time.Millisecond, func() {
				if sum(body) != before {
					l.changed.Add(1)
				}
				done(err)
			})
		}
	}
	l.Transport.Send(to, m)
}

func sum(parts [][]byte) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum64()
}

// TestWhatIsLentStays: until a transport gives bytes back, neither an operation nor, after
// it has returned, its caller changes them; not even if it was given up.
func TestWhatIsLentStays(t *testing.T) {
	const elements = 40_000
	scribble := func(x []float32) {
		for i := range x {
			x[i]--
		}
	}
	for name, do := range map[string]func(ctx context.Context, g *Group, x []float32) error{
		"ring": func(ctx context.Context, g *Group, x []float32) error {
			return AllReduce(ctx, g, x, Mean)
		},
		"doubling": func(ctx context.Context, g *Group, x []float32) error {
			return AllReduce(ctx, g, x[:1000], Mean)
		},
		"push-pull": func(ctx context.Context, g *Group, x []float32) error {
			return PushPull(ctx, g, x, g.Size(), Sum)
		},
		"broadcast": func(ctx context.Context, g *Group, x []float32) error {
			return Broadcast(ctx, g, x, 1)
		},
		"exchanger": func(ctx context.Context, g *Group, x []float32) error {
			e, err := NewExchanger(g, ExchangerOptions{})
			if err != nil {
				return err
			}
			defer e.Close()
			if err := e.Send(Exchange{Name: "w", Data: bytesOf(x)}); err != nil {
				return err
			}
			if err := e.Await(ctx, "w"); err != nil {
				e.Abandon()
				scribble(x)
				return err
			}
			return nil
		},
	} {
		for _, after := range []time.Duration{time.Hour, 30 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				net := memnet.NewNetwork(3, memnet.Options{Latency: time.Millisecond, Bps: 8e6})
				ends := make(chan error)
				var lenders []*lender
				for r := range 3 {
					l := &lender{Transport: net.Node(distrib.NodeID(r))}
					lenders = append(lenders, l)
					go func() {
						ctx, cancel := context.WithTimeout(background, after)
						defer cancel()
						mux, err := NewMux(l, Options{Chunk: 8 << 10})
						if err != nil {
							ends <- err
							return
						}
						g, err := mux.Group(members(3)...)
						x := numbers[float32](elements, r, 1)
						if err == nil {
							err = do(ctx, g, x)
						}
						scribble(x)
						time.Sleep(time.Second)
						mux.Close()
						ends <- err
					}()
				}
				for range lenders {
					if err := <-ends; err != nil && after == time.Hour {
						t.Errorf("%s: %v", name, err)
					}
				}
				for r, l := range lenders {
					if n := l.changed.Load(); n > 0 {
						t.Errorf("%s: %d messages of rank %d were changed under way", name, n, r)
					}
				}
			})
		}
	}
}

// TestEarlyMessagesAreBounded: what comes for groups that are not there fills no memory, and
// does not keep the mux from closing.
func TestEarlyMessagesAreBounded(t *testing.T) {
	o := Options{Chunk: 64, Window: 256}
	inWorld(t, 2, memnet.Options{}, o, func(w *world) {
		h := head{kind: userData, group: 12345, total: 64}
		arrived := 0
		for range 100 {
			w.net.Node(1).Send(0, &distrib.Msg{Class: distrib.Collective, Head: h.append(nil),
				Body: [][]byte{make([]byte, 64)}})
		}
		time.Sleep(time.Second)
		m := w.nodes[0].mux
		m.mu.Lock()
		arrived = len(m.early)
		if m.held != arrived*64 || m.held != 4*o.Window {
			t.Errorf("%d bytes of %d messages wait, want %d", m.held, arrived, 4*o.Window)
		}
		m.mu.Unlock()
	})
}
