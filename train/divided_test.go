package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/data/speech"
	"github.com/gomem/gomem/graph/tensor"
)

// tellTale is a scorer that shows which batches were scored, in order, by their inputs.
type tellTale struct{ lines []string }

func (s *tellTale) Score(b data.Batch, outputs []gomem.Tensor,
	_ func([]gomem.Tensor) ([]gomem.Tensor, error)) error {
	s.lines = append(s.lines, fmt.Sprintf("%x", b.Inputs[0].F32()[0]))
	return nil
}

func (s *tellTale) Metrics() (map[string]float64, error) {
	return map[string]float64{"scored": float64(len(s.lines))}, nil
}

func (s *tellTale) Samples() []string { return s.lines }
func (s *tellTale) Skip()             {}
func (s *tellTale) Add(b []byte) error {
	s.lines = append(s.lines, string(b))
	return nil
}

func (s *tellTale) Part() ([]byte, error) {
	b := []byte(strings.Join(s.lines, "?"))
	s.lines = nil
	return b, nil
}

// whole is one that cannot be divided.
type whole struct{ Scorer }

// heldBack are batches that note who has made which held-out ones, and call a function
// before.
type heldBack struct {
	data.Batches
	made *[]int
	mu   *sync.Mutex
	at   func(i int)
}

func (h heldBack) HeldOut(i int) data.Batch {
	h.mu.Lock()
	*h.made = append(*h.made, i)
	h.mu.Unlock()
	if h.at != nil {
		h.at(i)
	}
	return h.Batches.HeldOut(i)
}

// TestEvaluationIsDivided: of any number of workers, each evaluates batches that no other one
// does, and the result has the bits of one worker that evaluates the same weights: losses,
// metrics, scores and their order. A scorer that cannot be divided, and replicas that differ,
// have worker 0 evaluate alone; the result is the same.
func TestEvaluationIsDivided(t *testing.T) {
	for _, row := range []struct {
		workers int
		scorer  func() Scorer
		apart   bool
		want    string // which batches worker 0 makes
	}{
		{1, func() Scorer { return &tellTale{} }, false, "[0 1 2 3]"},
		{2, func() Scorer { return &tellTale{} }, false, "[0 2]"},
		{3, func() Scorer { return &tellTale{} }, false, "[0 3]"},
		{6, func() Scorer { return &tellTale{} }, false, "[0]"},
		{3, func() Scorer { return nil }, false, "[0 3]"},
		{3, func() Scorer { return whole{&tellTale{}} }, false, "[0 1 2 3]"},
		{3, func() Scorer { return &tellTale{} }, true, "[0 1 2 3]"},
	} {
		dir := t.TempDir() + "/run"
		made, mu := make([][]int, row.workers), &sync.Mutex{}
		have := abreast(row.workers, 0, func(rank int) (context.Context, Options) {
			o := lesson(t, 6, 1)
			o.Epochs, o.Steps = 0, 5
			o.Loader = heldBack{o.Loader, &made[rank], mu, nil}
			o.Scorer = func(int, bool) Scorer { return row.scorer() }
			if rank == 0 {
				o.Save = dir
			}
			return t.Context(), o
		}, func(rank int, a *averaging) { a.apart = row.apart && rank > 0 })
		if err := errors.Join(have.errs...); err != nil {
			t.Fatal(err)
		}
		o := lesson(t, 6, 1)
		want, err := Evaluate(t.Context(), EvalOptions{Model: o.Model, Loader: o.Loader, From: dir,
			Executions: 1, Session: o.Session, Scorer: row.scorer})
		if err != nil {
			t.Fatal(err)
		}
		got := have.summaries[0]
		if got.EvalLoss != want.Loss || fmt.Sprint(got.EvalMetrics) != fmt.Sprint(want.Metrics) ||
			got.EvalBatches != want.Batches {
			t.Errorf("%d workers: %v %v %d, want %v %v %d", row.workers, got.EvalLoss,
				got.EvalMetrics, got.EvalBatches, want.Loss, want.Metrics, want.Batches)
		}
		if fmt.Sprint(made[0]) != row.want {
			t.Errorf("%d workers: worker 0 makes %v, want %s", row.workers, made[0], row.want)
		}
		all := slices.Sorted(slices.Values(slices.Concat(made...)))
		if fmt.Sprint(all) != "[0 1 2 3]" {
			t.Errorf("%d workers: batches %v are made", row.workers, all)
		}
		if _, shows := row.scorer().(Sampler); shows {
			samples(t, have.events[0], o.Loader)
		}
	}
}

// samples demands that a tell-tale was told of all batches in order.
func samples(t *testing.T, events []Event, l data.Batches) {
	t.Helper()
	var want []string
	for i := range l.HeldOutBatches() {
		want = append(want, fmt.Sprintf("%x", l.HeldOut(i).Inputs[0].F32()[0]))
	}
	for _, e := range events {
		if e.Kind == Eval && !slices.Equal(e.Samples, want) {
			t.Errorf("scored %v, want %v", e.Samples, want)
		}
	}
}

// TestEvaluationStops: what a worker that is to end does not come to, worker 0 evaluates
// itself; if it is worker 0 that is to end, there is no result, and nobody waits for it.
func TestEvaluationStops(t *testing.T) {
	for stops := range 3 {
		made, mu := make([][]int, 3), &sync.Mutex{}
		have := abreast(3, 0, func(rank int) (context.Context, Options) {
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			o := lesson(t, 6, 1)
			o.Epochs, o.Steps, o.EvalEvery = 0, 20, 5
			o.Scorer = func(int, bool) Scorer { return &tellTale{} }
			at := func(int) {}
			if rank == stops {
				at = func(int) { cancel() }
			}
			o.Loader = heldBack{o.Loader, &made[rank], mu, at}
			return ctx, o
		})
		var evaluated []Event
		for _, e := range have.events[0] {
			if e.Kind == Eval {
				evaluated = append(evaluated, e)
			}
		}
		if stops == 0 && len(evaluated) > 0 || stops > 0 && len(evaluated) != 2 {
			t.Errorf("worker %d stops: %d evaluations", stops, len(evaluated))
		}
		samples(t, evaluated, lesson(t, 6, 1).Loader)
		for rank, s := range have.summaries {
			if have.errs[rank] != nil || !s.Interrupted || s.Steps != 6 {
				t.Errorf("worker %d: %+v, %v", rank, s, have.errs[rank])
			}
		}
	}
}

// TestParts: scorers that are given parts have the result of one that scores all batches,
// also where texts are no text; and no part of another kind is taken.
func TestParts(t *testing.T) {
	first := &textScorer{sources: []string{"a"}, translations: []string{"x y z w"},
		references: []string{"x y z w"}}
	second := &textScorer{sources: []string{"b\xff"}, translations: []string{"\xfe\x00 q r s"},
		references: []string{"\xfe\x00 q r t"}}
	whole, texts := &textScorer{rows: maxRows}, &textScorer{rows: maxRows}
	for _, s := range []*textScorer{first, second} {
		whole.sources = append(whole.sources, s.sources...)
		whole.translations = append(whole.translations, s.translations...)
		whole.references = append(whole.references, s.references...)
		part, err := s.Part()
		if err != nil || len(s.sources) > 0 || texts.Add(part) != nil {
			t.Fatal(err)
		}
	}
	want, _ := whole.Metrics()
	have, _ := texts.Metrics()
	if want["bleu"] == 0 || want["bleu"] != have["bleu"] ||
		!slices.Equal(texts.Samples(), whole.Samples()) ||
		!slices.Equal(texts.translations, whole.translations) {
		t.Errorf("%v, want %v", have, want)
	}
	heard := &speechScorer{heard: []string{"ab"}, said: []string{"ac"}}
	part, err := heard.Part()
	sum := &speechScorer{}
	if err != nil || sum.Add(part) != nil || sum.Add(part) != nil {
		t.Fatal(err)
	}
	if m, _ := sum.Metrics(); m["cer"] != speech.CER([]string{"ab"}, []string{"ac"}) {
		t.Errorf("%v", m)
	}
	for _, s := range []Divisible{&textScorer{}, &speechScorer{}, &perplexity{}} {
		for _, bad := range [][]byte{nil, []byte("no"), []byte(`{"heard":["a"],"sources":["YQ=="]}`)} {
			if err := s.Add(bad); !errors.Is(err, errUnscored) {
				t.Errorf("%T takes %q: %v", s, bad, err)
			}
		}
	}
	picture := &sampleWriter{}
	picture.Skip()
	if err := picture.Score(data.Batch{}, nil, nil); err != nil {
		t.Errorf("a picture of the second batch: %v", err)
	}
}

// TestPerplexityIsDivided: sums of batches are added, to the bit.
func TestPerplexityIsDivided(t *testing.T) {
	whole, sum := &perplexity{}, &perplexity{}
	for i := range 5 {
		losses := make([]float32, 7)
		ids := make([]int32, 7)
		for k := range losses {
			losses[k] = float32(k*k+i) / 3
			ids[k] = data.NoTarget
			if (k+i)%3 > 0 {
				ids[k] = 1
			}
		}
		b := data.Batch{Inputs: []gomem.Tensor{{}, tensor.FromI32(ids, 7)}}
		own := &perplexity{}
		for _, s := range []*perplexity{whole, own} {
			if err := s.Score(b, []gomem.Tensor{tensor.FromF32(losses, 7)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		part, err := own.Part()
		if err != nil || sum.Add(part) != nil {
			t.Fatal(err)
		}
	}
	if *whole != *sum || sum.tokens == 0 {
		t.Errorf("%+v, want %+v", sum, whole)
	}
}
