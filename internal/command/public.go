package command

import (
	"fmt"

	"github.com/gomem/gomem/train"
)

// openPublic reads a public checkpoint, of its directory or its tensors' file. It is nil
// if there is none at path: another kind of checkpoint, or nothing.
func openPublic(path string) (*train.Public, error) {
	if !train.IsPublic(path) {
		return nil, nil // who reads the other kind says what is wrong
	}
	p, err := train.OpenPublic(path)
	if err == nil && p.Tokenizer == nil {
		err = &train.ErrCheckpoint{Path: path, Err: p.Wordless()}
	}
	return p, err
}

// publicInit is the public checkpoint that the run of a model begins with, nil if it does with
// none. It has to be of the network that the run trains: what its tensors do not tell, too; and it
// has a tokenizer, unless the run has its own.
func (f saveFlags) publicInit(m modelFlags, tokenizer bool) (*train.Public, error) {
	if m.Model != "gpt" || f.Init == "" || f.Rename != "" || !train.IsPublic(string(f.Init)) {
		return nil, nil
	}
	open := train.OpenPublic
	if !tokenizer {
		open = openPublic
	}
	p, err := open(string(f.Init))
	if err != nil {
		return nil, err
	}
	ours, err := gptConfig(m)
	if err != nil {
		return nil, err
	}
	theirs := p.Config
	for _, d := range []struct {
		what         string
		ours, theirs any
	}{
		{"blocks", ours.Blocks, theirs.Blocks}, {"heads", ours.Heads, theirs.Heads},
		{"heads of keys", ours.KeyHeads, theirs.KeyHeads}, {"a norm's eps", ours.Eps, theirs.Eps},
		{"a rotary base", ours.RotaryBase, theirs.RotaryBase},
		{"another matrix of logits", ours.Untied, theirs.Untied},
		{"the family", ours.Family, theirs.Family},
		{"heads of their own width", ours.HeadWidth, theirs.HeadWidth},
		{"rotary positions that are scaled", ours.Rotary, theirs.Rotary},
		{"biases of queries", ours.QueryBias, theirs.QueryBias},
		{"biases of hidden units", ours.HiddenBias, theirs.HiddenBias},
		{"a window", ours.Window, theirs.Window}, {"experts", ours.Experts, theirs.Experts},
		{"experts of a token", ours.PerToken, theirs.PerToken},
		{"gates that add up to 1", ours.Renorm, theirs.Renorm},
	} {
		if d.ours != d.theirs {
			err := fmt.Errorf("its network has %s: %v, and that of --model gpt has %v: give "+
				"--network %s", d.what, d.theirs, d.ours, f.Init)
			return nil, &train.ErrCheckpoint{Path: p.Path, Err: err}
		}
	}
	return p, nil
}

// checkpointOf is what is known of a public checkpoint as of one of gomem's.
func checkpointOf(p *train.Public) train.Checkpoint {
	if p == nil {
		return train.Checkpoint{}
	}
	return train.Checkpoint{Path: p.Path, Model: "gpt", Size: p.Config.Size}
}
