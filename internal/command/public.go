package command

import (
	"errors"

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
		err = &train.ErrCheckpoint{Path: path, Err: errors.New("has no tokenizer.json: put the " +
			"one that the model was trained with beside the weights")}
	}
	return p, err
}

// checkpointOf is what is known of a public checkpoint as of one of gomem's.
func checkpointOf(p *train.Public) train.Checkpoint {
	if p == nil {
		return train.Checkpoint{}
	}
	return train.Checkpoint{Path: p.Path, Model: "gpt", Size: p.Config.Size}
}
