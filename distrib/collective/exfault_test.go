package collective

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// TestExchangesFail: what happens to a step in which a node is lost, or does not come: who
// waits learns of it by name, nothing can be sent any more, and nothing hangs.
func TestExchangesFail(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(w *world, x *node) error // instead of the second exchange
		want  func(error) bool
		most  time.Duration
	}{
		{"lost", func(w *world, x *node) error {
			w.net.Kill(2)
			return errors.New("killed")
		}, func(err error) bool { return lostNode(err) == 2 }, 2 * time.Second},
		{"late for good", func(*world, *node) error { return nil }, func(err error) bool {
			var stall *distrib.StallError
			return strings.Contains(err.Error(), "stalled: exchange large f32[40000] sum/ring "+
				"waits for node [2] at clock 1") &&
				(errors.As(err, &stall) || strings.Contains(err.Error(), "gave up"))
		}, 65 * time.Second},
		{"gone in peace", func(_ *world, x *node) error { return x.ex.Close() },
			func(err error) bool { return lostNode(err) == 2 }, 2 * time.Second},
	} {
		net := memnet.Options{Latency: time.Millisecond, Bps: 8e6}
		inWorld(t, 4, net, Options{}, func(w *world) {
			errs := w.each(func(x *node) error {
				e, err := x.exchanger(ExchangerOptions{})
				if err != nil {
					return err
				}
				small, large := make([]byte, 4), make([]byte, 160_000)
				if err := e.Send(Exchange{Name: "small", Data: small}); err != nil {
					return err
				}
				if err := e.Await(background, "small"); err != nil {
					return err
				}
				if x.rank == 2 {
					return c.fault(w, x)
				}
				err = e.Send(Exchange{Name: "large", Type: "f32[40000]", Via: Ring, Data: large})
				if err != nil {
					return err
				}
				err = e.Await(background, "large")
				e.Abandon()
				small[0] = 1
				large[0] = 1
				if again := e.Send(Exchange{Name: "next", Data: small}); again == nil {
					return fmt.Errorf("it goes on after %w", err)
				}
				return err
			})
			for r, err := range errs {
				if r != 2 && (err == nil || !c.want(err)) {
					t.Errorf("%s: rank %d: %v", c.name, r, err)
				}
			}
			if w.passed() > c.most {
				t.Errorf("%s: it took %v", c.name, w.passed())
			}
		})
	}
}

// TestTheOthersMayBeSlow: an exchange that waits for a slow node is reported and goes on.
func TestTheOthersMayBeSlow(t *testing.T) {
	lines := make(chan string, 10)
	o := Options{Log: func(s string) { lines <- s }}
	inWorld(t, 2, memnet.Options{}, o, func(w *world) {
		w.must(func(x *node) error {
			e, err := x.exchanger(ExchangerOptions{})
			if err != nil {
				return err
			}
			if x.rank == 1 {
				time.Sleep(50 * time.Second)
			}
			for _, name := range []string{"w", "v"} { // the second one is not reported
				ex := Exchange{Name: name, Type: "f32[1]", Data: make([]byte, 4)}
				if err := e.Send(ex); err != nil {
					return err
				}
				time.Sleep(time.Second)
			}
			return errors.Join(e.Await(background, "w"), e.Await(background, "v"))
		})
		close(lines)
		for _, after := range []string{"10s", "20s", "40s"} {
			want := "stalled: exchange w f32[1] sum/hybrid waits for node [1] at clock 1 for "
			if l := <-lines; l != want+after {
				t.Errorf("%s, want %s", l, want+after)
			}
		}
		if l, ok := <-lines; ok {
			t.Error(l)
		}
	})
}

// shy is a transport that sends its node's notices a second late.
type shy struct{ distrib.Transport }

func (s shy) Send(to distrib.NodeID, m *distrib.Msg) {
	if h, err := parseHead(m.Head); err == nil && h.kind == userData && m.Tag == orderTag {
		time.AfterFunc(time.Second, func() { s.Transport.Send(to, m) })
		return
	}
	s.Transport.Send(to, m)
}

// TestClosedBeforeCompared: a rank that has all that it exchanged may close before the last
// names were compared; the others' exchanges do not fail by that.
func TestClosedBeforeCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.NewNetwork(2, memnet.Options{})
		var muxes [2]*Mux
		var exchangers [2]*Exchanger
		for i, tr := range []distrib.Transport{net.Node(0), shy{net.Node(1)}} {
			var err error
			if muxes[i], err = NewMux(tr, Options{}); err != nil {
				t.Fatal(err)
			}
			group, err := muxes[i].Group(0, 1)
			if err != nil {
				t.Fatal(err)
			}
			if exchangers[i], err = NewExchanger(group, ExchangerOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		for i, e := range exchangers {
			all.Go(func() {
				err := e.Send(Exchange{Name: "u", Data: make([]byte, 4)})
				err = errors.Join(err, e.Send(Exchange{Name: "v", Data: make([]byte, 4)}))
				err = errors.Join(err, e.Await(background, "u"), e.Await(background, "v"))
				if i == 0 {
					err = errors.Join(err, e.Close(), muxes[0].Close())
				}
				if err != nil {
					t.Errorf("rank %d: %v", i, err)
				}
			})
		}
		all.Wait()
		time.Sleep(2 * time.Second)
		if err := exchangers[1].Err(); err != nil {
			t.Errorf("after the other has closed in peace: %v", err)
		}
		if err := errors.Join(exchangers[1].Close(), muxes[1].Close()); err != nil {
			t.Error(err)
		}
	})
}
