package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// TopicConfig is one topic model. [NewTopicConfig] fills it in; every number may be changed
// afterwards.
type TopicConfig struct {
	Size string // s512, s64 or base

	Documents int // a step
	Vocab     int // words
	Topics    int
	Parts     int // variables that the topics are divided among, as evenly as can be

	Iterations int     // that a document's proportions are found in
	Sparsity   float32 // times the sum of the proportions, beside the squared loss

	Schedule Constant
	Training Training // in place of the updates' own
}

// NewTopicConfig is the model of a size: "base" has the shape of Orpheus' second application
// (141,000 words by 50,000 topics, 7.05 billion parameters), "s64" is its replica at an eighth of
// both with the same graph, and "s512" a small one for tests. The replicas have smaller batches.
func NewTopicConfig(size string) (TopicConfig, error) {
	c := TopicConfig{Size: size, Parts: 8, Iterations: 20, Sparsity: 0.05, Schedule: 4}
	switch size {
	case "base":
		c.Documents, c.Vocab, c.Topics = 100, 141_000, 50_000
	case "s64":
		c.Documents, c.Vocab, c.Topics = 16, 17_625, 6_250
	case "s512":
		c.Documents, c.Vocab, c.Topics, c.Parts = 8, 256, 32, 2
	default:
		return TopicConfig{}, unknownSize(size)
	}
	return c, nil
}

// Validate reports the first number that no model can have, on one line that names
// the option and what to do.
func (c TopicConfig) Validate() error {
	if _, err := NewTopicConfig(c.Size); err != nil {
		return err
	}
	if err := within(
		limit{"--batch", c.Documents, 1, maxBatch},
		limit{"--vocabulary", c.Vocab, 1, math.MaxInt32 / 4},
		limit{"--topics", c.Topics, c.Parts, math.MaxInt32 / 4},
		limit{"--batch times --vocabulary", c.Documents * c.Vocab, 1, math.MaxInt32 / 4},
		limit{"parts", c.Parts, 1, maxExperts},
		limit{"iterations", c.Iterations, 1, maxFrames},
	); err != nil {
		return err
	}
	if !(c.Schedule > 0) || math.IsInf(float64(c.Schedule), 0) {
		return fmt.Errorf("learning rate is %v: want a positive number", float32(c.Schedule))
	}
	return fractions(share{"sparsity", c.Sparsity})
}

// Parameters is the number of elements of all variables, by closed form.
func (c TopicConfig) Parameters() int64 { return int64(c.Vocab) * int64(c.Topics) }

// Topic builds a topic model: Orpheus' second application (Xie et al. 2018, section 2.1; Kumar et
// al., Fugue, 2014), a dictionary B, f32[vocab topics], whose columns are topics. A document d is a
// bag of words, and is modelled as B·a of proportions a ≥ 0. Its data are words f32[documents
// vocab] and counts f32[documents], 1 or, of a row that is no document, 0. The loss is the mean
// over documents of ½‖d − B·a‖², and the metric "explained" is the share of the squares of d that
// is in B·a. B is divided by columns into variables topics/0/weight and on, so that each fits a
// device.
//
// The paper does not say how a is found, nor what else bounds it. Here it is what makes
// ½‖d − B·a‖² + Sparsity·Σa least among all a ≥ 0: without the last term many dictionaries fit
// alike, and topics are not found again. It is found by accelerated proximal gradient steps (Beck
// and Teboulle 2009), as many as Iterations, of 1/L, where L is no less than the largest
// eigenvalue of BᵀB: for any x > 0 that of |B|ᵀ|B| is at most the largest (|B|ᵀ|B|·x)ⱼ/xⱼ
// (Collatz and Wielandt), and a few steps of the power method bring x close.
//
// At a minimum over a the derivative by B is that with a held fixed, so what is differentiated is
// B·a alone, and the gradient is the paper's (B·a − d)·aᵀ, a pair of vectors a document, which
// workers exchange as factors.
//
// The paper keeps each document's a from epoch to epoch, in host memory. Given B there is one least
// value, wherever a search for it starts, so what is kept there is a better start, and costs
// documents times topics numbers, of which every worker has its own. Here each step starts from
// zero: a batch stays a pure function of its number, and a run may be resumed, and workers come and
// go, without them. In a step the proportions of every iteration are values of the graph, which
// plans keep, swap or compute again like any others.
func Topic(c TopicConfig) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := nn.NewModel()
	words := m.Input("words", graph.F32, c.Documents, c.Vocab)
	counts := m.Input("counts", graph.F32, c.Documents)
	loss, explained := c.loss(m.Training(), words, counts)
	c.Training.Minimize(m, loss, nn.SGD{}, nn.MinimizeOptions{Rate: c.Schedule,
		Metrics: []nn.Metric{explained}})
	loss, explained = c.loss(m.Evaluation(), words, counts)
	m.Evaluate(loss, explained)
	device, host := replicaBudget(c.Size)
	of := &Model{Model: *m, Name: "topic", Size: c.Size, Domain: Documents,
		Unit: Documents.unit(), Classes: c.Vocab, DeviceBytes: device, HostBytes: host}
	return of.done()
}

// loss is the mean of the documents' losses, and how much of them is explained.
func (c TopicConfig) loss(at *nn.Ctx, words, counts graph.Value) (graph.Value, nn.Metric) {
	if !words.Valid() || !counts.Valid() {
		return graph.Value{}, nn.Metric{} // the graph's error says why
	}
	d := dictionary{TopicConfig: c}
	for i := range c.Parts {
		topics := (i+1)*c.Topics/c.Parts - i*c.Topics/c.Parts
		d.parts = append(d.parts, at.In("topics").In(fmt.Sprint(i)).Param("weight",
			nn.Positive(2/math.Sqrt(float64(c.Vocab))), c.Vocab, topics))
	}
	leave := at.In("proportions").Enter()
	proportions := d.solve(words)
	leave()
	defer at.Enter()()
	for i, a := range proportions {
		proportions[i] = ops.StopGradient(a)
	}
	rest := ops.Square(ops.Sub(d.words(proportions), words))
	losses := ops.Scale(ops.Sum(rest, 1), 0.5)
	all := ops.AddScalar(ops.Sum(ops.Square(words)), tiny)
	explained := ops.Sub(ops.Ones(at.Graph(), tensor.Of(graph.F32)), ops.Div(ops.Sum(rest), all))
	return nn.MeanOver(losses, counts), nn.Metric{Name: "explained", Value: explained}
}

// tiny keeps quotients finite.
const tiny = 1e-6

// dictionary is the topics of a pass.
type dictionary struct {
	TopicConfig
	parts []graph.Value // f32[vocab topics]
}

// words are what proportions f32[n topics], by parts, come to: f32[n vocab].
func (d dictionary) words(proportions []graph.Value) (sum graph.Value) {
	for i, a := range proportions {
		if part := ops.MatMulT(a, d.parts[i], false, true); i == 0 {
			sum = part
		} else {
			sum = ops.Add(sum, part)
		}
	}
	return sum
}

// topics are products of words f32[n vocab] with all topics: f32[n topics], by parts.
func (d dictionary) topics(words graph.Value) (products []graph.Value) {
	for _, part := range d.parts {
		products = append(products, ops.MatMul(words, part))
	}
	return products
}

// solve finds the proportions of documents, f32[documents topics], by parts.
func (d dictionary) solve(words graph.Value) []graph.Value {
	step := ops.Reciprocal(d.steepest())
	descend := func(from, gradient graph.Value) graph.Value {
		down := ops.Mul(ops.AddScalar(gradient, d.Sparsity), step)
		if !from.Valid() {
			return ops.Relu(ops.Neg(down))
		}
		return ops.Relu(ops.Sub(from, down))
	}
	before := make([]graph.Value, len(d.parts))
	for i, product := range d.topics(words) { // from zeros
		before[i] = descend(graph.Value{}, ops.Neg(product))
	}
	ahead, t := before, math.Phi // of the second step; the first has no momentum
	for range d.Iterations - 1 {
		next := (1 + math.Sqrt(float64(4*t*t)+1)) / 2
		momentum := float32((t - 1) / next)
		t = next
		now, further := make([]graph.Value, len(d.parts)), make([]graph.Value, len(d.parts))
		for i, gradient := range d.topics(ops.Sub(d.words(ahead), words)) {
			now[i] = descend(ahead[i], gradient)
			further[i] = ops.Add(now[i], ops.Scale(ops.Sub(now[i], before[i]), momentum))
		}
		before, ahead = now, further
	}
	return before
}

// powers is how many steps of the power method there are.
const powers = 3

// steepest is no less than the largest eigenvalue of BᵀB, f32[].
func (d dictionary) steepest() (most graph.Value) {
	sizes := dictionary{TopicConfig: d.TopicConfig}
	x := make([]graph.Value, len(d.parts))
	for i, part := range d.parts {
		sizes.parts = append(sizes.parts, ops.Abs(part))
		x[i] = ops.Ones(part.Graph(), tensor.Of(graph.F32, 1, part.Type().Size(1)))
	}
	for range powers {
		y := sizes.topics(sizes.words(x))
		most = graph.Value{}
		for i := range y {
			y[i] = ops.Add(y[i], ops.Scale(x[i], tiny)) // a topic may be zeros
			if top := ops.Max(ops.Div(y[i], x[i])); most.Valid() {
				most = ops.Maximum(most, top)
			} else {
				most = top
			}
		}
		x = y
	}
	return most
}
