package collective

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib/memnet"
)

// backward is a pass whose gradients are done the last layer's first, and the pass forward that
// follows it.
type backward struct {
	name  string
	sizes []int // bytes of a layer's gradient, by layer
}

// What passes take, in equal parts for all layers, on how many ranks over which links.
const (
	backwardTime, forwardTime = time.Second, time.Second / 2
	orderRanks                = 4
	orderBps                  = 16e6
)

// done is when the gradient of a layer is.
func (b backward) done(layer int) time.Duration {
	n := time.Duration(len(b.sizes))
	return backwardTime * (n - time.Duration(layer)) / n
}

// ended are the layers in the order in which their gradients are done.
func (b backward) ended() (order []int) {
	for i := range b.sizes {
		order = append([]int{i}, order...)
	}
	return order
}

// needed are the layers in the order in which the next pass needs them.
func (b backward) needed() []int { return slices.Sorted(slices.Values(b.ended())) }

// urgent is the order in which, whenever the links are free, the first layer of those that are
// done goes: what a scheduler with priorities does, decided before from what all takes.
func (b backward) urgent() (order []int) {
	left, free := b.needed(), time.Duration(0)
	for len(left) > 0 {
		at := slices.IndexFunc(left, func(i int) bool { return b.done(i) <= free })
		if at < 0 { // the next to be done is the last
			free = b.done(left[len(left)-1])
			continue
		}
		bytes := 2 * b.sizes[left[at]] * (orderRanks - 1) / orderRanks
		free += time.Duration(float64(bytes) * 8 / orderBps * float64(time.Second))
		order, left = append(order, left[at]), slices.Delete(left, at, at+1)
	}
	return order
}

// exchanged is when all is there that is exchanged in an order, and, if a pass forward follows
// whose layers wait for no more than their own gradients, when that ends.
func (b backward) exchanged(t *testing.T, order []int, forward time.Duration) (end time.Duration) {
	net := memnet.Options{Latency: time.Millisecond, Bps: orderBps}
	inWorld(t, orderRanks, net, Options{Chunk: 16 << 10}, func(w *world) {
		w.must(func(x *node) error {
			e, err := x.exchanger(ExchangerOptions{})
			if err != nil {
				return err
			}
			for _, i := range order {
				time.Sleep(b.done(i) - w.passed())
				err := e.Send(Exchange{Name: fmt.Sprint(i), Data: make([]byte, b.sizes[i])})
				if err != nil {
					return err
				}
			}
			time.Sleep(backwardTime - w.passed())
			for i := range b.sizes {
				if err := e.Await(background, fmt.Sprint(i)); err != nil {
					return err
				}
				time.Sleep(forward / time.Duration(len(b.sizes)))
			}
			return nil
		})
		end = w.passed()
	})
	return end
}

// TestOrders: a step that ends with all gradients ends no earlier for any order in which they are
// sent, which is what priorities are, than for the one in which they are done.
func TestOrders(t *testing.T) {
	const kib = 1 << 10
	for _, b := range []backward{
		{"eight alike", slices.Repeat([]int{200 * kib}, 8)},
		{"a wide last one", append(slices.Repeat([]int{100 * kib}, 7), 900*kib)},
		{"a wide first one", append([]int{900 * kib}, slices.Repeat([]int{100 * kib}, 7)...)},
	} {
		first := b.exchanged(t, b.ended(), 0)
		for _, o := range []struct {
			name  string
			order []int
		}{{"as they are done", b.ended()}, {"as they are needed", b.needed()},
			{"as they are needed, of those that are done", b.urgent()}} {
			end := b.exchanged(t, o.order, 0)
			t.Logf("| %s | %s | %.3f | %.3f |", b.name, o.name, end.Seconds(),
				b.exchanged(t, o.order, forwardTime).Seconds())
			if end < first*995/1000 {
				t.Errorf("%s, %s: %v, as they are done %v", b.name, o.name, end, first)
			}
		}
	}
}
