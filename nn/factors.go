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
// the number of workers. A weight that several layers, or the steps of a recurrent one, have in
// common has the factors of all of them, one after the other, and so has a table that is
// looked up, whose factors are the rows' numbers and gradients. Gradients that are accumulated
// over executions are exchanged as they are.
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

// Way is how workers exchange what a step makes of a parameter: with the bytes of the whole, as
// it would be sent to one other, and those of its factors. Factors are 0 where there are none, or
// where others have been sent that are the same. [Factoring] chooses between the two.
type Way struct {
	Parameter      graph.Value
	Dense, Factors int64
	ByFactors      bool
}

// way notes how a parameter's gradient goes, whose factors are of so many bytes.
func (l *learner) way(w graph.Value, dense, factors int64, byFactors bool) {
	l.ways = append(l.ways, Way{w, dense, factors, byFactors})
}

// gathering exchanges gradients by their factors: what is multiplied on every worker, in
// place of the products. A factor of several gradients, such as the input of layers side by
// side, is exchanged once.
type gathering struct {
	learner *learner
	joining ops.Joining
	flying  map[graph.Value]graph.Value // by factor: what is in flight
	all     map[graph.Value]graph.Value // by factor: those of all workers
}

func newGathering(l *learner) *gathering {
	return &gathering{learner: l, joining: ops.Joining{Any: true},
		flying: map[graph.Value]graph.Value{}, all: map[graph.Value]graph.Value{}}
}

// send sends the factors of gradient i, unless it is better to exchange the gradient.
func (x *gathering) send(i int) (sent bool) {
	l := x.learner
	if l.Factoring == nil || ops.Factors(l.grads[i]) == nil {
		l.way(l.parameters[i], l.grads[i].Type().Bytes(), 0, false)
		return false
	}
	var fresh []graph.Value
	bytes, known := int64(0), map[graph.Value]bool{}
	joined := x.joining.Join(l.grads[i])
	for _, f := range ops.Factors(joined) {
		if !known[f] && !x.flying[f].Valid() {
			fresh, bytes = append(fresh, f), bytes+f.Type().Bytes()
		}
		known[f] = true
	}
	gradient := joined.Type().Bytes()
	sent = l.Factoring.Factors(gradient, bytes)
	l.way(l.parameters[i], gradient, bytes, sent)
	if !sent {
		return false
	}
	l.grads[i] = joined
	for k, f := range fresh {
		name := fmt.Sprintf("%s/factor%d", l.parameters[i].Node.Name, k)
		sent := f
		if f.Type().DType == graph.I32 {
			sent = ops.Cast(f, graph.F32)
		}
		x.flying[f] = ops.SendPart(sent, name, l.Workers)
	}
	return true
}

// await is the gradient whose factors have been sent, of all workers.
func (x *gathering) await(i int) graph.Value {
	l := x.learner
	sum := ops.Refactor(l.grads[i], func(f graph.Value) graph.Value {
		if !x.all[f].Valid() {
			x.all[f] = ops.Await(x.flying[f])
			if f.Type().DType == graph.I32 {
				x.all[f] = ops.Cast(x.all[f], graph.I32)
			}
		}
		return x.all[f]
	})
	if l.Exchange.Fold == graph.Mean {
		sum = ops.Scale(sum, 1/float32(l.Workers))
	}
	return sum
}
