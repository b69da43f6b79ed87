package train

import (
	"context"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/data/speech"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// TestTextScorer: a model that knows the targets scores 100, one that says nothing
// 0, and decoding ends when every text has.
func TestTextScorer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters.tsv")
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "number %d\ta b c d %d\n", i, i%10)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := data.Open(context.Background(), "tsv:"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := data.TrainTokenizer(context.Background(), c, toyVocab)
	if err != nil {
		t.Fatal(err)
	}
	batch := loader(t, c, tok, toy(toyVocab, unigram{})).HeldOut(0)
	if TextScorer(tok, 0)(1, false) != nil || TextScorer(tok, 0)(1, true) != nil {
		t.Error("a scorer where nothing is to be scored")
	}
	if m, err := TextScorer(tok, 3)(1, false).Metrics(); len(m) > 0 || err != nil {
		t.Errorf("texts that are to be looked at are scored: %v, %v", m, err)
	}
	for _, row := range []struct {
		name  string
		says  []int32
		want  float64
		calls int
	}{
		{"knows", batch.Inputs[1].I32(), 100, toyLength},
		{"silent", slices.Repeat([]int32{data.EOS}, toyPairs*toyLength), 0, 1},
	} {
		s, calls := TextScorer(tok, 1)(1, true), 0
		again := func(inputs []gomem.Tensor) ([]gomem.Tensor, error) {
			calls++
			return []gomem.Tensor{tensor.FromI32(row.says, toyPairs, toyLength, 1)}, nil
		}
		for range 2 { // the second batch is one too many
			if err := s.Score(batch, nil, again); err != nil {
				t.Fatal(err)
			}
		}
		scores, err := s.Metrics()
		if err != nil || scores["bleu"] != row.want || calls > row.calls {
			t.Errorf("%s: %v after %d calls, %v", row.name, scores, calls, err)
		}
	}
}

// TestSpeechScorer: logits that spell out the labels have no errors, silence has
// nothing but.
func TestSpeechScorer(t *testing.T) {
	labels := []int32{8, 9, 0, 0}
	batch := data.Batch{Inputs: []gomem.Tensor{
		gomem.NewTensor(tensor.FromF32(make([]float32, 4*2*26), 4, 2, 26).Type),
		tensor.FromI32(labels, 2, 2), gomem.Pair(2, 0), gomem.Pair(4, 0),
	}}
	for _, row := range []struct {
		says []int
		want float64
	}{{[]int{8, 8, speech.Symbols - 1, 9}, 0}, {slices.Repeat([]int{speech.Symbols - 1}, 4), 1}} {
		logits := make([]float32, 4*2*speech.Symbols)
		for frame, symbol := range row.says {
			logits[frame*2*speech.Symbols+symbol] = 1
		}
		s := SpeechScorer(speech.English())(1, false)
		if err := s.Score(batch, []gomem.Tensor{tensor.FromF32(logits, 4, 2, speech.Symbols)},
			nil); err != nil {
			t.Fatal(err)
		}
		if scores, err := s.Metrics(); err != nil || scores["cer"] != row.want {
			t.Errorf("%v: %v, %v; want %v", row.says, scores, err, row.want)
		}
	}
}

// TestSampleWriter: the first batch becomes a picture, whole or not at all.
func TestSampleWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pictures")
	scorer, err := SampleWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := scorer(7, false)
	for range 2 {
		if err := s.Score(data.Batch{},
			[]gomem.Tensor{tensor.FromF32(make([]float32, 5*3*8*8), 5, 3, 8, 8)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(filepath.Join(dir, "step-000007.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if p, err := png.Decode(f); err != nil || p.Bounds().Dx() < 3*8 {
		t.Errorf("picture %v, %v", p, err)
	}
	if names := names(t, dir); len(names) != 1 {
		t.Errorf("left %v", names)
	}
	for _, bad := range []string{filepath.Join(dir, "step-000007.png"),
		filepath.Join(dir, "step-000007.png", "below")} {
		if _, err := SampleWriter(bad); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("pictures in %s: %v", bad, err)
		}
	}
}

// recorder notes which batches are asked for.
type recorder struct {
	data.Batches
	asked []int
}

func (r *recorder) Train(step int) data.Batch {
	r.asked = append(r.asked, step)
	return r.Batches.Train(step)
}

// TestObjectives: objectives take turns, each execution with a batch of its own,
// and all of them show.
func TestObjectives(t *testing.T) {
	m := toy(toyVocab, unigram{})
	w := m.Graph.Variable("other", m.Objectives[0].Updates[0].In[0].Type(), graph.Init{})
	v := m.Graph.State("other/momentum", w.Type(), graph.Init{})
	n := m.Graph.Apply(unigram{}, m.Data[1], w, m.Seed)
	m.Objectives[0].Name, m.Objectives[0].Times = "first", 2
	m.Objectives = append(m.Objectives, nn.Objective{
		Name: "second", Times: 1, Loss: n.Value(0), Metrics: []nn.Metric{{Name: "share",
			Value: n.Value(2)}},
		Updates: []*graph.Node{m.Graph.Update(momentum{}, []graph.Value{w, v}, n.Value(1),
			m.LearningRate, m.Step)},
	})
	o := toyOptions(t, m)
	asked := &recorder{Batches: o.Loader}
	o.Loader, o.Steps = asked, 3
	events := watch(&o)
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	// the first to check its types
	if got := fmt.Sprint(asked.asked); got != "[0 0 1 2 3 4 5 6 7 8]" {
		t.Errorf("batches %s", got)
	}
	for _, e := range *events {
		_, accuracy := e.Metrics["accuracy"]
		_, share := e.Metrics["share"]
		if e.Kind == Step && (e.Loss == 0 || e.Metrics["second"] == 0 || !accuracy || !share) {
			t.Errorf("%+v", e)
		}
	}
	resumes(t, toyOptions(t, m))
}

// broken are batches of files that are gone.
type broken struct{ data.Batches }

func (broken) Err() error { return os.ErrNotExist }

// TestUnreadableData ends a run, rather than train on nothing.
func TestUnreadableData(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Loader = broken{o.Loader}
	if _, err := Run(context.Background(), o); err == nil ||
		!strings.Contains(err.Error(), "not exist") {
		t.Errorf("the error is %v", err)
	}
}

// TestSamples: a few texts and the worst recording are shown, on one line each.
func TestSamples(t *testing.T) {
	s := &textScorer{sources: []string{"a\nb", "c", "d", "e"}, translations: []string{"\x1b[2J x",
		"y", "z", "w"}}
	if got := strings.Join(s.Samples(), "|"); got != "a b -> [2J x|c -> y|d -> z" {
		t.Errorf("texts %q", got)
	}
	heard := &speechScorer{said: []string{"yes", "no no", "yes"}, heard: []string{"yes", "a", "y"}}
	if got := heard.Samples(); len(got) != 1 || got[0] != `worst: said "no no", heard "a"` {
		t.Errorf("recordings %q", got)
	}
	if got := (&speechScorer{said: []string{"yes"}, heard: []string{"yes"}}).Samples(); got != nil {
		t.Errorf("nothing was misheard, but %q", got)
	}
}
