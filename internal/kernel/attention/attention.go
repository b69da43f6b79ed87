package attention

import (
	"github.com/gomem/gomem/internal/kernel/gemm"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// The sizes of a tile: one of logits, and what it reads of queries, keys and values, stay in the
// cache of a core.
const (
	queryBlock = 128
	keyBlock   = 128
)

// lanes bounds the tiles that are computed at a time, each in scratch of its own.
const lanes = 32

// Rows are vectors of an operand or a result: of every element of a batch, head and place.
type Rows struct {
	F32               []float32
	Batch, Head, Next int // elements to those of the next of each
}

// at is the elements from a row on.
func (r Rows) at(b, h, i int) []float32 { return r.F32[b*r.Batch+h*r.Head+i*r.Next:] }

// Problem is attention of queries to keys by heads.
type Problem struct {
	Batch, Queries, Keys int
	Heads, Groups        int // of queries, and of keys and values, which divide them
	Size, ValueSize      int // of a query and a key, and of a value

	// Rows is how many queries there are in the whole of which these are some; it sets
	// the order of sums. Zero means Queries.
	Rows int

	Scale   float32 // of the products of queries and keys
	Softcap float32 // c: logits are c·tanh(x/c); zero leaves them
	mask
	Noise
}

// Noise is dropout of weights.
type Noise struct {
	Keep float32 // the share of weights that is kept; zero means all
	Key  uint64  // of the random stream
	// From is the number in the stream of the first weight, and Batch, Head and Next are the
	// distances to those of the next element, head and query.
	From, ByBatch, ByHead, ByQuery int
}

// drops says that there is dropout.
func (n *Noise) drops() bool { return n.Keep > 0 && n.Keep < 1 }

// number is that of the weight of a query and a key.
func (n *Noise) number(b, h, q, k int) uint64 {
	return uint64(n.From + b*n.ByBatch + h*n.ByHead + q*n.ByQuery + k)
}

// blocks is how many blocks of so many there are.
func blocks(n, block int) int { return (n + block - 1) / block }

func (x *Problem) tileElems() int { return min(x.Queries, queryBlock) * min(x.Keys, keyBlock) }

// forwardTasks is how many tiles' rows are computed each by itself.
func (x *Problem) forwardTasks() int { return x.Batch * x.Heads * blocks(x.Queries, queryBlock) }

// ScratchForward is the bytes of scratch that Forward takes.
func ScratchForward(x Problem) int64 {
	return 4 * int64(min(lanes, x.forwardTasks())) * int64(x.forwardElems())
}

// forwardElems are a tile, and for each row the largest logit, how much it grew and the sum.
func (x *Problem) forwardElems() int { return x.tileElems() + 3*min(x.Queries, queryBlock) }

// each runs tasks in lanes, of which each has its own part of scratch.
func each(p *pool.Pool, tasks, elems int, scratch []float32, f func(task int, own []float32)) {
	n := min(lanes, tasks)
	p.Run(n, func(lane int) {
		for task := lane; task < tasks; task += n {
			f(task, scratch[lane*elems:(lane+1)*elems])
		}
	})
}

// logits is the order of products of queries and keys: that of a whole tile.
func (x *Problem) logits() gemm.Order {
	p := gemm.Product{M: min(max(x.Rows, x.Queries), queryBlock), N: min(x.Keys, keyBlock),
		K: x.Size}
	p.B.Trans = true
	return p.Order()
}

// mixes is the order of products of weights and values.
func (x *Problem) mixes() gemm.Order {
	return gemm.Product{M: min(max(x.Rows, x.Queries), queryBlock), N: x.ValueSize,
		K: min(x.Keys, keyBlock)}.Order()
}

// tile is a block of queries of a head, and one of keys.
type tile struct {
	b, h, g        int // element of the batch, heads of queries and of keys
	q0, q1, k0, k1 int
}

func (t *tile) rows() int { return t.q1 - t.q0 }
func (t *tile) keys() int { return t.k1 - t.k0 }

// multiply computes the scaled products of a tile's queries and keys.
func (x *Problem) multiply(dst []float32, q, k Rows, t *tile, as gemm.Order) {
	n := t.keys()
	gemm.Product{M: t.rows(), N: n, K: x.Size, Alpha: x.Scale, C: dst, LDC: n, As: as,
		A: gemm.Matrix{F32: q.at(t.b, t.h, t.q0), LD: q.Next},
		B: gemm.Matrix{F32: k.at(t.b, t.g, t.k0), LD: k.Next, Trans: true},
	}.Compute(nil)
}
