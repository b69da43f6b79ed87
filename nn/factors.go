package nn

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// Factoring chooses how workers exchange the gradient of a weight that is a sum of products
// of a layer's inputs and of the gradients of its outputs, a pair for every sample of the
// batch: as it is, or these factors of all workers, which each of them then multiplies for
// itself, in the order of ranks. So a weight of many rows and columns needs but a few bytes
// where batches are small. What is gathered is in host memory: what a worker sends, times
// the number of workers. Gradients that are accumulated over executions, of tables that are
// tied and of recurrent layers are exchanged as they are.
type Factoring interface {
	// Factors reports whether factors are exchanged, of so many bytes a worker, in place of
	// a gradient of so many. Those that another gradient has sent do not count. It depends
	// on nothing else but what all workers have in common.
	Factors(gradient, factors int64) bool
}

// join makes one product of gradients that are sums of products.
func (l *learner) join() {
	var joining ops.Joining
	l.each(func(i int) { l.grads[i] = joining.Join(l.grads[i]) })
}

// gathering exchanges gradients by their factors: what is multiplied on every worker, in
// place of the products. A factor of several gradients, such as the input of layers side by
// side, is exchanged once.
type gathering struct {
	learner *learner
	flying  map[graph.Value]graph.Value // by factor: what is in flight
	all     map[graph.Value]graph.Value // by factor: those of all workers
}

func newGathering(l *learner) *gathering {
	return &gathering{l, map[graph.Value]graph.Value{}, map[graph.Value]graph.Value{}}
}

// send sends the factors of gradient i, unless it is better to exchange the gradient.
func (x *gathering) send(i int) (sent bool) {
	l := x.learner
	if l.Factoring == nil {
		return false
	}
	var fresh []graph.Value
	bytes, known := int64(0), map[graph.Value]bool{}
	factors := ops.Factors(l.grads[i])
	for _, f := range factors {
		if !known[f] && !x.flying[f].Valid() {
			fresh, bytes = append(fresh, f), bytes+f.Type().Bytes()
		}
		known[f] = true
	}
	if factors == nil || !l.Factoring.Factors(l.grads[i].Type().Bytes(), bytes) {
		return false
	}
	for k, f := range fresh {
		name := fmt.Sprintf("%s/factor%d", l.parameters[i].Node.Name, k)
		x.flying[f] = ops.SendPart(f, name, l.Workers)
	}
	return true
}

// await is the gradient whose factors have been sent, of all workers.
func (x *gathering) await(i int) graph.Value {
	l := x.learner
	sum := ops.Refactor(l.grads[i], func(f graph.Value) graph.Value {
		if !x.all[f].Valid() {
			x.all[f] = ops.Await(x.flying[f])
		}
		return x.all[f]
	})
	if l.Exchange.Fold == graph.Mean {
		sum = ops.Scale(sum, 1/float32(l.Workers))
	}
	return sum
}
