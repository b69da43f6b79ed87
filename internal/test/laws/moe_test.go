package laws_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// moe is the smallest model of a form.
func moe(t testing.TB, sparse bool) *models.Model {
	t.Helper()
	c, err := models.NewMoEConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	c.Sparse = sparse
	m, err := models.MoE(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// moeFeeds are a model's inputs at a step: random sentences.
func moeFeeds(m *models.Model, vocab, step int) gomem.Feeds {
	rng := rand.New(rand.NewPCG(3, uint64(step)))
	ids := func(v graph.Value) gomem.Tensor {
		x := gomem.NewTensor(v.Type())
		for i := range x.I32() {
			x.I32()[i] = 1 + rng.Int32N(int32(vocab-1))
		}
		return x
	}
	return gomem.Feeds{
		m.Data[0]: ids(m.Data[0]), m.Data[1]: ids(m.Data[1]),
		m.Seed:         gomem.Pair(1, int32(step)),
		m.LearningRate: gomem.Scalar(0.01),
		m.Step:         gomem.Scalar(float32(step + 1)),
	}
}

// moeDigest trains a model for some steps and hashes all it leaves behind.
func moeDigest(m *models.Model, o gomem.Options, n int) (string, error) {
	ctx := context.Background()
	s, err := gomem.Compile(ctx, m.Graph, o, gomem.Training(m.Graph, m.Objectives[0].Loss),
		gomem.Evaluation(m.EvalLoss))
	if err != nil {
		return "", err
	}
	defer s.Close()
	h := sha256.New()
	for step := range n {
		out, err := s.Step(ctx, "train", moeFeeds(m, 200, step))
		if err != nil {
			return "", err
		}
		h.Write(out[0].Data)
	}
	out, err := s.Step(ctx, "eval", moeFeeds(m, 200, n))
	if err != nil {
		return "", err
	}
	h.Write(out[0].Data)
	for _, v := range s.Variables() {
		x, err := s.Get(v)
		if err != nil {
			return "", err
		}
		h.Write(x.Data)
	}
	for _, u := range s.Usage() {
		if u.Actual != u.Predicted {
			return "", fmt.Errorf("%s used %d, predicted %d", u.Space, u.Actual, u.Predicted)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// moeOptions are the combinations that the first law is checked with, the
// smallest budget of every other one included: all of them, or every so many.
func moeOptions(every int) []gomem.Options {
	var all []gomem.Options
	for _, s := range partition.Strategies() {
		for _, size := range []int{5, 20, 200} {
			for _, k := range []int{1, 2, 4} {
				o := gomem.Options{Strategy: s, Partition: size, Lookahead: k}
				o.Streams, o.Threads = 1+len(all)%2, 1+len(all)/2%2
				all = append(all, o)
			}
		}
	}
	for _, streams := range []int{1, 2} {
		for _, threads := range []int{1, 2} {
			all = append(all,
				gomem.Options{Policy: planner.Vanilla, Streams: streams, Threads: threads},
				gomem.Options{NoPlacement: true, Streams: streams, Threads: threads},
				gomem.Options{NoSwap: true, Streams: streams, Threads: threads})
		}
	}
	for _, bytes := range []int64{0, 1 << 20, 3 << 19} {
		o := planner.Options{Policy: planner.Auto, Partition: 10, DeviceBytes: bytes}
		all = append(all, gomem.Options{Threads: 2}.With(o))
	}
	var some []gomem.Options
	for i := 0; i < len(all); i += every {
		some = append(some, all[i])
	}
	return some
}

// least is the smallest device budget for training and evaluation.
func least(t *testing.T, m *models.Model, o planner.Options) int64 {
	t.Helper()
	var bytes int64
	for _, target := range []gomem.Target{gomem.Training(m.Graph, m.Objectives[0].Loss),
		gomem.Evaluation(m.EvalLoss)} {
		b, err := planner.MinDevice(context.Background(), m.Graph, target, o)
		if err != nil {
			t.Fatal(err)
		}
		bytes = max(bytes, b)
	}
	return bytes
}

// TestMoEIsBitIdentical: 30 steps of the model, 4 in the short form, dense and sparse, give the
// same losses and weights under every policy, partition size, look-ahead, strategy, number of
// streams and threads, and at the smallest budget.
func TestMoEIsBitIdentical(t *testing.T) {
	longtest.Skip(t)
	n := longtest.Count(4, 30)
	for _, sparse := range []bool{false, true} {
		m := moe(t, sparse)
		want, err := moeDigest(m, gomem.Options{Policy: planner.Vanilla, Threads: 1}, n)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range moeOptions(longtest.Count(7, 1)) {
			if i%2 == 0 {
				o.DeviceBytes = least(t, m, o.Planning())
			}
			got, err := moeDigest(m, o, n)
			if err != nil {
				t.Fatalf("sparse=%v %s threads=%d: %v", sparse, o.Planning(), o.Threads, err)
			}
			if got != want {
				t.Errorf("sparse=%v %s threads=%d budget=%d gives other bits", sparse, o.Planning(),
					o.Threads, o.DeviceBytes)
			}
		}
	}
}

// TestThesisFigure64: partitioning with swapping needs less device memory than
// vanilla, and placement less again.
func TestThesisFigure64(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		m := moe(t, sparse)
		peak := func(o planner.Options) int64 {
			r, err := planner.Compile(context.Background(), m.Graph,
				gomem.Training(m.Graph, m.Objectives[0].Loss), o)
			if err != nil {
				t.Fatal(err)
			}
			return r.Plan.Spaces[space.Device].Bytes
		}
		vanilla, partitioned, placed := peak(planner.Options{Policy: planner.Vanilla}),
			peak(planner.Options{NoPlacement: true}), peak(planner.Options{})
		if !(vanilla > partitioned && partitioned > placed) {
			t.Errorf("sparse=%v: vanilla %d, +partition %d, +placement %d", sparse, vanilla,
				partitioned, placed)
		}
	}
}
