package predict

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// translator is a model that translates: its evaluation, and its decoder.
type translator struct {
	name    string
	whole   func() (*models.Model, error)
	decoder func(texts, beams int) (*models.Decoder, error)
}

// translators are small ones of all forms. Of mixtures of experts the evaluation is the
// one without limits of experts, and without chance.
func translators(t *testing.T) []translator {
	t.Helper()
	base, err := models.NewTransformerConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	var all []translator
	for _, fine := range []bool{false, true} {
		c := base
		c.Fine = fine
		all = append(all, translator{fmt.Sprintf("transformer, fine %t", fine),
			func() (*models.Model, error) { return models.Transformer(c) },
			func(texts, beams int) (*models.Decoder, error) {
				return models.DecodeTransformer(c, texts, beams)
			}})
	}
	mixture, err := models.NewMoEConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	for _, stacked := range []bool{false, true} {
		c := mixture
		c.Stacked = stacked
		all = append(all, translator{fmt.Sprintf("moe, stacked %t", stacked),
			func() (*models.Model, error) {
				c := c
				c.Sparse, c.SecondThreshold = true, 0
				return models.MoE(c)
			},
			func(texts, beams int) (*models.Decoder, error) {
				return models.DecodeMoE(c, texts, beams)
			}})
	}
	return all
}

// drawn are the weights that a seed selects: those of a name are the same everywhere.
// They are larger than what training begins with, so that logits differ clearly.
func drawn(seed uint64) Weights {
	return func(s *gomem.Session, vars []graph.Value) error {
		if err := s.Initialize(seed); err != nil {
			return err
		}
		for _, v := range vars {
			x, err := s.Get(v)
			if err != nil {
				return err
			}
			if v.Type().Rank() > 1 {
				for i := range x.F32() {
					x.F32()[i] *= 2
				}
			}
			if err := s.Set(v, x); err != nil {
				return err
			}
		}
		return nil
	}
}

// open makes a decoder ready.
func open(t *testing.T, d *models.Decoder, o gomem.Options, w Weights) *Texts {
	t.Helper()
	planned, err := gomem.Plan(context.Background(), d.Graph, o, TextTargets(d)...)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := OpenTexts(planned, o, d, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := texts.Close(); err != nil {
			t.Error(err)
		}
	})
	return texts
}

// sourcesOf draws texts to translate, one of them empty, one too long.
func sourcesOf(n, length, vocab int) [][]int32 {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([][]int32, n)
	for i := 1; i < n; i++ {
		for range rng.IntN(length) + i/(n-1)*length {
			out[i] = append(out[i], int32(2+rng.IntN(vocab-2)))
		}
	}
	return out
}

// again translates as training's scorer does: by the whole evaluation, once a token.
func again(t *testing.T, m *models.Model, w Weights, sources [][]int32) [][]int32 {
	t.Helper()
	e, err := m.Evaluation()
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	s, err := gomem.Compile(ctx, e.Graph, gomem.Options{Policy: planner.Vanilla},
		train.EvalTarget(&e.Model))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := w(s, s.Variables()); err != nil {
		t.Fatal(err)
	}
	pairs, length := e.Data[0].Type().Size(0), e.Data[0].Type().Size(1)
	var out [][]int32
	for first := 0; first < len(sources); first += pairs {
		source, target := tensor.New(e.Data[0].Type()), tensor.New(e.Data[1].Type())
		for row := range pairs {
			n := 0
			if first+row < len(sources) {
				n = copy(source.I32()[row*length:][:length-1], sources[first+row])
			}
			source.I32()[row*length+n] = data.EOS
		}
		for i := range length {
			fetched, err := s.Step(ctx, "eval", gomem.Feeds{e.Data[0]: source, e.Data[1]: target,
				e.Seed: gomem.Pair(0, int32(i))})
			if err != nil {
				t.Fatal(err)
			}
			best := fetched[len(fetched)-1].I32()
			for row := range pairs {
				target.I32()[row*length+i] = best[row*length+i]
			}
		}
		for row := range min(pairs, len(sources)-first) {
			ids := target.I32()[row*length:][:length]
			end := slices.IndexFunc(ids, func(id int32) bool {
				return id == data.EOS || id == data.PAD
			})
			if end < 0 {
				end = length
			}
			out = append(out, slices.Clone(ids[:end]))
		}
	}
	return out
}

// TestDecodingIsEvaluation: greedy search with caches writes what the whole evaluation
// of the growing text says, token by token, under any plan.
func TestDecodingIsEvaluation(t *testing.T) {
	longtest.Skip(t)
	for _, x := range translators(t) {
		m, err := x.whole()
		if err != nil {
			t.Fatal(err)
		}
		d, err := x.decoder(3, 1)
		if err != nil {
			t.Fatal(err)
		}
		sources := sourcesOf(7, d.Length, d.Vocab)
		want := again(t, m, drawn(5), sources)
		if len(slices.Concat(want...)) < len(want)*d.Length/4 {
			t.Fatalf("%s writes next to nothing: %v", x.name, want)
		}
		for _, o := range []gomem.Options{{Policy: planner.Vanilla}, {Policy: planner.Thesis,
			Partition: 3, NoFusion: true}, {Policy: planner.Auto, DeviceBytes: 200_000}} {
			texts := open(t, d, o, drawn(5))
			got, err := texts.Translate(context.Background(), sources, Search{})
			if err != nil {
				t.Fatal(err)
			}
			streamed(t, x.name, d, texts, o)
			for i := range want {
				if !slices.Equal(got[i].Tokens, want[i]) {
					t.Errorf("%s under %s: text %d is\n%v, the evaluation says\n%v", x.name,
						o.Policy, i, got[i].Tokens, want[i])
				}
			}
		}
	}
}

// streamed demands that a budget was kept to, though the weights alone are larger.
func streamed(t *testing.T, name string, d *models.Decoder, texts *Texts, o gomem.Options) {
	t.Helper()
	u := texts.Usage()[0]
	if weights := 4 * d.Graph.Parameters(); o.DeviceBytes > 0 && (weights <= o.DeviceBytes ||
		u.Actual > o.DeviceBytes) || u.Actual != u.Predicted {
		t.Errorf("%s: %d bytes of weights, a budget of %d, %+v", name, weights, o.DeviceBytes, u)
	}
}

// TestBeams: by its own score a beam is never worse than greedy search, and its result
// does not depend on the plan, nor on what else is translated.
func TestBeams(t *testing.T) {
	ctx := context.Background()
	for _, x := range translators(t)[:3] {
		sources := sourcesOf(5, 16, 500)
		scores := map[int][]float64{}
		for _, beams := range []int{1, 2, 4} {
			d, err := x.decoder(2, beams)
			if err != nil {
				t.Fatal(err)
			}
			o := Search{Beams: beams, Penalty: 0.6}
			texts := open(t, d, gomem.Options{Policy: planner.Vanilla}, drawn(9))
			got, err := texts.Translate(ctx, sources, o)
			if err != nil {
				t.Fatal(err)
			}
			alone, err := texts.Translate(ctx, sources[3:4], o)
			if err != nil {
				t.Fatal(err)
			}
			tight, err := open(t, d, gomem.Options{Policy: planner.Thesis, Partition: 2},
				drawn(9)).Translate(ctx, sources, o)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				scores[beams] = append(scores[beams], got[i].Score)
				if got[i].Score < scores[1][i]-1e-4 { // products of other sizes round otherwise
					t.Errorf("%s: beam %d of text %d scores %v, greedy search %v", x.name, beams, i,
						got[i].Score, scores[1][i])
				}
				if fmt.Sprint(got[i]) != fmt.Sprint(tight[i]) {
					t.Errorf("%s: another plan, another text: %v, %v", x.name, got[i], tight[i])
				}
			}
			if fmt.Sprint(alone[0]) != fmt.Sprint(got[3]) {
				t.Errorf("%s: alone %v, among others %v", x.name, alone[0], got[3])
			}
		}
		if slices.Equal(scores[1], scores[4]) {
			t.Logf("%s: a beam of 4 found nothing better", x.name)
		}
	}
}

// TestTextsRefuse: what cannot be is said in a line.
func TestTextsRefuse(t *testing.T) {
	ctx := context.Background()
	x := translators(t)[0]
	d, err := x.decoder(2, 2)
	if err != nil {
		t.Fatal(err)
	}
	texts := open(t, d, gomem.Options{Policy: planner.Vanilla}, drawn(1))
	for _, c := range []struct {
		err  func() error
		says string
	}{
		{func() error { _, err := texts.Translate(ctx, nil, Search{Beams: -1}); return err },
			"beam of -1"},
		{func() error { _, err := texts.Translate(ctx, nil, Search{Beams: 3}); return err },
			"the decoder has 2"},
		{func() error {
			_, err := texts.Translate(ctx, nil, Search{Beams: 2, Penalty: 11})
			return err
		}, "length penalty"},
		{func() error { _, err := texts.Continue(ctx, nil, Sampling{}, nil); return err },
			"translates"},
		{func() error { _, err := x.decoder(0, 1); return err }, "texts at once"},
		{func() error { _, err := x.decoder(1, 0); return err }, "beams"},
		{func() error {
			_, err := OpenTexts(nil, gomem.Options{}, d, drawn(1))
			return err
		}, "no plans"},
	} {
		if err := c.err(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v does not say %q", err, c.says)
		}
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := texts.Translate(done, [][]int32{{5}}, Search{Beams: 2}); err == nil {
		t.Error("a search goes on when nobody waits")
	}
	if _, err := texts.Translate(ctx, [][]int32{{5}}, Search{Beams: 2}); err != nil {
		t.Errorf("after one that was given up: %v", err)
	}
}
