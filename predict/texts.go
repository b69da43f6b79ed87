package predict

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// Texts translates or continues texts with a decoder. Its methods may not be called
// at the same time.
type Texts struct {
	session *gomem.Session
	decoder *models.Decoder
}

// encoding is the name of the target that reads source texts.
const encoding = "encode"

// stepName is the name of the target that takes n tokens of every row.
func stepName(n int) string { return fmt.Sprintf("decode-%d", n) }

// TextTargets are what a decoder computes. The first is the step of one token, which
// is executed the most.
func TextTargets(d *models.Decoder) []gomem.Target {
	var targets []gomem.Target
	for i := len(d.Steps) - 1; i >= 0; i-- {
		s := d.Steps[i]
		targets = append(targets, gomem.Target{Name: stepName(s.Size()),
			Fetches: []graph.Value{s.Logits}, Updates: ids(s.Updates)})
	}
	if d.Encode != nil {
		targets = append(targets, gomem.Target{Name: encoding, Updates: ids(d.Encode.Updates)})
	}
	return targets
}

func ids(nodes []*graph.Node) []graph.NodeID {
	var out []graph.NodeID
	for _, n := range nodes {
		out = append(out, n.ID)
	}
	return out
}

// OpenTexts takes the memory for plans of [TextTargets] and gives the decoder the
// weights that load sets; see [Checkpoint].
func OpenTexts(planned *gomem.Planned, o gomem.Options, d *models.Decoder,
	load Weights) (*Texts, error) {
	o.NoInitialize = true
	s, err := gomem.Open(planned, o)
	if err != nil {
		return nil, err
	}
	if err := load(s, parameters(s, d)); err != nil {
		return nil, cmp.Or(err, s.Close())
	}
	return &Texts{session: s, decoder: d}, nil
}

// Weights gives variables of a session their values.
type Weights func(s *gomem.Session, vars []graph.Value) error

// Checkpoint are the weights of a checkpoint: its file, or a directory for the latest
// in it.
func Checkpoint(path string) Weights {
	return func(s *gomem.Session, vars []graph.Value) error { return train.Load(path, s, vars) }
}

// parameters are the variables that decoding does not write.
func parameters(s *gomem.Session, d *models.Decoder) []graph.Value {
	written := map[graph.NodeID]bool{}
	note := func(updates []*graph.Node) {
		for _, n := range updates {
			for _, v := range n.In[:n.Mutates] {
				written[v.Node.ID] = true
			}
		}
	}
	for _, step := range d.Steps {
		note(step.Updates)
	}
	if d.Encode != nil {
		note(d.Encode.Updates)
	}
	var out []graph.Value
	for _, v := range s.Variables() {
		if !written[v.Node.ID] {
			out = append(out, v)
		}
	}
	return out
}

// Reload gives the decoder's parameters values anew, of which load may set some.
func (t *Texts) Reload(load Weights) error {
	return load(t.session, parameters(t.session, t.decoder))
}

// Close frees the memory.
func (t *Texts) Close() error { return t.session.Close() }

// Usage is what is needed of each memory.
func (t *Texts) Usage() []gomem.Usage { return t.session.Usage() }

// Rows is how many texts there is room for beside each other, beams counted.
func (t *Texts) Rows() int { return t.decoder.Batch }

// Translate writes a translation of each source, which is ids without an end, and is
// cut where there is no room for it. A text ends with the ids data.EOS or data.PAD.
// The decoder must have been made with the search's number of beams; sources may be
// any number. An error of the search's is one line; any other is the session's.
func (t *Texts) Translate(ctx context.Context, sources [][]int32, o Search) ([]Text, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if t.decoder.Encode == nil {
		return nil, errors.New("the decoder reads no source: it can only continue texts")
	}
	at := t.decoder.Encode.Source.Type().Size(0)
	if beams := t.decoder.Batch / at; beams != max(1, o.Beams) {
		return nil, fmt.Errorf("beam of %d: the decoder has %d for each text", o.Beams, beams)
	}
	var texts []Text
	for first := 0; first < len(sources); first += at {
		some := sources[first:min(first+at, len(sources))]
		if err := t.encode(ctx, some); err != nil {
			return nil, err
		}
		found, err := search(ctx, t, at, t.decoder.Length, data.PAD,
			[]int32{data.EOS, data.PAD}, o)
		if err != nil {
			return nil, err
		}
		texts = append(texts, found[:len(some)]...)
	}
	return texts, nil
}

// encode reads sources. Behind the last are some without tokens.
func (t *Texts) encode(ctx context.Context, sources [][]int32) error {
	in := t.decoder.Encode.Source
	fed := tensor.New(in.Type())
	length := in.Type().Size(1)
	for row := range in.Type().Size(0) {
		ids := fed.I32()[row*length:][:length]
		n := 0
		if row < len(sources) {
			n = copy(ids[:length-1], sources[row])
		}
		ids[n] = data.EOS
	}
	_, err := t.session.Step(ctx, encoding, gomem.Feeds{in: fed})
	return err
}

// step is one token of every row.
func (t *Texts) step(ctx context.Context, tokens []int32, position int,
	parents []int32) ([]float32, error) {
	return t.execute(ctx, t.decoder.Steps[len(t.decoder.Steps)-1], tokens, position, parents)
}

func (t *Texts) execute(ctx context.Context, s models.DecodeStep, tokens []int32, position int,
	parents []int32) ([]float32, error) {
	out, err := t.session.Step(ctx, stepName(s.Size()), gomem.Feeds{
		s.Tokens:   tensor.FromI32(tokens, t.decoder.Batch, s.Size()),
		s.Position: tensor.FromI32([]int32{int32(position)}),
		s.Parent:   tensor.FromI32(parents, t.decoder.Batch),
	})
	if err != nil {
		return nil, err
	}
	return out[0].F32(), nil
}

// sizes are the steps'.
func (t *Texts) sizes() []int {
	var out []int
	for _, s := range t.decoder.Steps {
		out = append(out, s.Size())
	}
	return out
}

// read is a step of n tokens of every row, each of which continues itself.
func (t *Texts) read(ctx context.Context, n int, tokens []int32, position int) ([]float32, error) {
	parents := make([]int32, t.decoder.Batch)
	for i := range parents {
		parents[i] = int32(i)
	}
	for _, s := range t.decoder.Steps {
		if s.Size() == n {
			return t.execute(ctx, s, tokens, position, parents)
		}
	}
	return nil, fmt.Errorf("the decoder has no step of %d tokens", n)
}

// Continue writes on after each prompt, which has one id or more; of one that leaves
// no room the last ids are taken that do. emit may be nil; it gets every token as it is
// written, with the place of its prompt. The same prompt has the same continuation
// wherever it is, if nothing is drawn.
func (t *Texts) Continue(ctx context.Context, prompts [][]int32, o Sampling,
	emit func(prompt int, token int32)) ([]Text, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if t.decoder.Encode != nil {
		return nil, errors.New("the decoder translates: it needs sources, not prompts")
	}
	var texts []Text
	rows := t.decoder.Batch
	for first := 0; first < len(prompts); first += rows {
		some := prompts[first:min(first+rows, len(prompts))]
		batch := make([][]int32, rows)
		for i := range batch {
			prompt := some[min(i, len(some)-1)]
			if len(prompt) == 0 {
				return nil, fmt.Errorf("prompt %d is empty: want a token or more", first+i)
			}
			batch[i] = prompt[max(0, len(prompt)-t.decoder.Length+1):]
		}
		written, err := proceed(ctx, t, batch, t.decoder.Length, o.First+first, o,
			func(row int, token int32) {
				if emit != nil && row < len(some) {
					emit(first+row, token)
				}
			})
		if err != nil {
			return nil, err
		}
		texts = append(texts, written[:len(some)]...)
	}
	return texts, nil
}
