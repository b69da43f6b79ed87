package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// public is a checkpoint in the form in which GPT-2 and LLaMA are published: tensors
// by public names, and beside them config.json and tokenizer.json.
type public struct {
	path      string // of the tensors
	config    models.GPTConfig
	tokenizer *data.Tokenizer
}

// The names of the files.
const (
	publicTensors   = "model.safetensors"
	publicConfig    = "config.json"
	publicTokenizer = "tokenizer.json"
)

// openPublic reads a public checkpoint, of its directory or its tensors' file. It is nil
// if there is none at path: another kind of checkpoint, or nothing.
func openPublic(path string) (*public, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, publicTensors)
	}
	file, err := safetensors.Open(path)
	if err != nil {
		return nil, nil // who reads the other kind says what is wrong
	}
	defer file.Close()
	p := &public{path: path}
	if file.Metadata()["gomem.format"] != "" || !p.plausible(file) {
		return nil, nil
	}
	if p.config, err = p.configured(file); err != nil {
		return nil, &train.ErrCheckpoint{Path: path, Err: err}
	}
	p.tokenizer, err = data.LoadTokenizer(filepath.Join(filepath.Dir(path), publicTokenizer))
	if err != nil {
		return nil, &train.ErrCheckpoint{Path: path, Err: err}
	}
	if used, have := p.tokenizer.Used(), p.config.Vocab; used > have {
		return nil, &train.ErrCheckpoint{Path: path, Err: fmt.Errorf("its %s has %d tokens, the "+
			"model has room for %d: give those that belong together", publicTokenizer, used, have)}
	}
	return p, nil
}

// plausible reports whether there is a configuration beside the tensors, or they are
// called what GPT-2's are.
func (p *public) plausible(file *safetensors.File) bool {
	if _, err := os.Stat(filepath.Join(filepath.Dir(p.path), publicConfig)); err == nil {
		return true
	}
	_, err := models.Shaped(sizesIn(file))
	return err == nil
}

// sizesIn gives the axes of a file's tensors.
func sizesIn(file *safetensors.File) func(name string) []int {
	sizes := map[string][]int{}
	for _, e := range file.Entries() {
		sizes[e.Name] = e.Type.Sizes()
	}
	return func(name string) []int { return sizes[name] }
}

// configured is the model by its config.json or, without one, by its tensors.
func (p *public) configured(file *safetensors.File) (models.GPTConfig, error) {
	text, err := regular.ReadFile(filepath.Join(filepath.Dir(p.path), publicConfig))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return models.Shaped(sizesIn(file))
	case err != nil:
		return models.GPTConfig{}, fmt.Errorf("%s: %w", publicConfig, bare(err))
	}
	c, err := models.ParseGPTConfig(text)
	if err != nil {
		return c, fmt.Errorf("%s: %w", publicConfig, err)
	}
	return c, nil
}

// checkpoint is what is known of it as of one of gomem's.
func (p *public) checkpoint() train.Checkpoint {
	if p == nil {
		return train.Checkpoint{}
	}
	return train.Checkpoint{Path: p.path, Model: "gpt", Size: cmp.Or(p.config.Size, "base")}
}

// weights sets variables to the tensors of their public names, whatever floating-point
// numbers these are.
func (p *public) weights(s *gomem.Session, vars []graph.Value) error {
	wanted := map[graph.NodeID]bool{}
	for _, v := range vars {
		wanted[v.Node.ID] = true
	}
	_, err := s.Load(p.path, gomem.LoadOptions{Convert: true, Rename: p.config.ParameterName,
		Only: func(v graph.Value) bool { return wanted[v.Node.ID] }})
	return err
}
