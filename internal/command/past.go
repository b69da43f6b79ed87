package command

import (
	"context"
	"fmt"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/train"
)

// past is what a run goes on from.
type past struct {
	from *checkpointed // nil: the run is new
}

// words is the tokenizer of the run that is resumed; nil of a new run.
func (p past) words() (*data.Tokenizer, error) {
	if p.from == nil {
		return nil, nil
	}
	return p.from.tokenizer()
}

// id tells the data of a run apart. A run that goes on from a checkpoint that was made
// before contents told has the id that the data had then.
func (p past) id(d dataset) string {
	if p.from != nil && d.formerly != "" && p.from.Config["data"] == d.formerly {
		return d.formerly
	}
	return d.id
}

// sizeByWords sizes a model by the sub-words that were learnt.
func sizeByWords(c *trainCmd, t *data.Tokenizer, most int) error {
	if t.Used() >= most || c.kept() != "" { // a network's table has room for more
		return nil
	}
	return c.past.resize("vocabulary", &c.Vocabulary, t.Used())
}

// resize makes a size of the model that of the data. In a run that is resumed it is, if the
// checkpoint says nothing of it, its size's: once all were.
func (p past) resize(name string, field *count, to int) error {
	if p.from != nil && p.from.Config[name] == "" {
		return nil
	}
	*field = count(to)
	return nil
}

// subWords are those of the file that was given, of the checkpoint that the run goes on from,
// of the public one that it begins with, or of the text.
func (p past) subWords(ctx context.Context, text *data.Running, most int, file string,
	public *train.Public) (*data.Tokenizer, error) {
	switch {
	case file != "":
	case p.from != nil:
		return p.from.tokenizer()
	case public != nil:
		return public.Tokenizer, nil
	}
	if file == "" {
		return data.LearnTokenizer(ctx, text.Texts(), most)
	}
	tokenizer, err := data.LoadTokenizer(file)
	if err == nil && tokenizer.Used() > most {
		err = fmt.Errorf("--tokenizer %s has %d ids, the model room for %d: give "+
			"--vocabulary %d", file, tokenizer.Used(), most, tokenizer.Used())
	}
	return tokenizer, err
}
