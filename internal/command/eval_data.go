package command

import (
	"context"
	"io"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/data/images"
	"github.com/gomem/gomem/data/speech"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// load reads what is to be evaluated, in batches of the model's. Of data that it was
// trained on it is what was held out, else all: whole.
func (c *evalCmd) load(ctx context.Context, w io.Writer, x checkpointed,
	m *models.Model) (d dataset, whole bool, err error) {
	spec, err := c.spec(x)
	if err != nil {
		return d, false, err
	}
	share, err := x.evalShare()
	if err != nil {
		return d, false, err
	}
	l := &evalLoading{ctx, w, spec, 0, x, m, c}
	load := map[string]func() (dataset, error){"moe": l.texts, "transformer": l.texts,
		"gpt": l.running, "lstm-lm": l.running, "resnet": l.photos, "wgan": l.pictures,
		"deepspeech": l.speech, "topic": l.bags, networks: l.arrays}
	// Only reading tells whether data is the run's own, which alone has the run's share.
	if spec == x.spec() {
		l.share = share
	}
	d, err = load[x.kind.name]()
	if err == nil && share != 0 && l.whole(d) == (l.share != 0) {
		l.share = share - l.share
		d, err = load[x.kind.name]()
	}
	if err != nil {
		return d, false, asSpec(err)
	}
	return d, l.whole(d), nil
}

// evalShare is the share of its data that a run held out, 0 if it was not told.
func (x checkpointed) evalShare() (float64, error) {
	text := x.Config["eval-share"]
	if text == "" {
		return 0, nil
	}
	var s share
	if err := s.UnmarshalText([]byte(text)); err != nil {
		return 0, x.unusable("eval-share %w", err)
	}
	return float64(s), nil
}

// evalLoading is the reading of data for an evaluation.
type evalLoading struct {
	ctx   context.Context
	w     io.Writer
	spec  string
	share float64 // of the data that is held out; 0 is the default
	checkpointed
	model *models.Model
	*evalCmd
}

// whole reports whether data is not what the model was trained on.
func (x checkpointed) whole(d dataset) bool {
	trained := x.Config["data"]
	return trained != d.id && trained != d.formerly
}

// texts are pairs of texts.
func (l *evalLoading) texts() (dataset, error) {
	tokenizer, err := l.tokenizer()
	if err != nil {
		return dataset{}, err
	}
	corpus, err := data.Options{EvalShare: l.share,
		Progress: reading(l.w, l.spec)}.Open(l.ctx, l.spec)
	if err != nil {
		return dataset{}, err
	}
	d := dataset{id: corpus.Info.SHA256, formerly: corpus.Info.Listing}
	d.scorer = train.TextScorer(tokenizer, translations(l.BLEU, l.model))
	if l.whole(d) {
		corpus = corpus.Whole()
	}
	rows := l.model.Data[0].Type()
	d.about = corpus.Info.String()
	d.batches, err = data.NewLoader(corpus, tokenizer,
		data.LoaderOptions{Pairs: rows.Size(0), Length: rows.Size(1), Seed: l.Seed})
	return d, err
}

// running is running text.
func (l *evalLoading) running() (dataset, error) {
	tokenizer, err := l.tokenizer()
	if err != nil {
		return dataset{}, err
	}
	text, err := data.Options{EvalShare: l.share,
		Progress: reading(l.w, l.spec)}.OpenRunning(l.ctx, l.spec)
	if err != nil {
		return dataset{}, err
	}
	d := dataset{id: text.Info.SHA256, formerly: text.Info.Listing}
	if l.whole(d) {
		text = text.Whole()
	}
	d, err = runningBatches(l.ctx, text, tokenizer, l.model, l.Seed)
	d.id, d.formerly, d.about = text.Info.SHA256, text.Info.Listing, text.Info.String()
	return d, err
}

// photos are images whose kinds the model was taught.
func (l *evalLoading) photos() (dataset, error) {
	return l.images(images.LoaderOptions{Scale: images.Means, Classes: l.model.Classes})
}

// pictures are images of any kind.
func (l *evalLoading) pictures() (dataset, error) {
	return l.images(images.LoaderOptions{Scale: images.Symmetric})
}

func (l *evalLoading) images(o images.LoaderOptions) (dataset, error) {
	set, err := images.Open(l.ctx, l.spec, images.Options{Seed: l.Seed, EvalShare: l.share,
		Strict: l.Strict}, reading(l.w, l.spec))
	if err != nil {
		return dataset{}, err
	}
	d := dataset{id: set.Info.SHA256, formerly: set.Info.Listing}
	if l.whole(d) {
		set = set.Whole()
		if o.Classes > 0 && len(l.Classes) > 0 {
			if set, err = set.Labelled(l.Classes); err != nil {
				return d, &data.Error{Spec: l.spec, Err: err}
			}
		}
	}
	t := l.model.Data[0].Type()
	o.Images, o.Size, o.Seed = t.Size(0), t.Size(2), l.Seed
	d.about = set.Info.String()
	d.batches, err = images.NewLoader(set, o)
	return d, err
}

// speech is recordings with what is said.
func (l *evalLoading) speech() (dataset, error) {
	letters, err := l.letters()
	if err != nil {
		return dataset{}, err
	}
	set, err := speech.Open(l.ctx, l.spec, speech.Options{Seed: l.Seed, EvalShare: l.share,
		Letters: letters}, reading(l.w, l.spec))
	if err != nil {
		return dataset{}, err
	}
	d := dataset{id: set.Info.SHA256, formerly: set.Info.Listing,
		scorer: train.SpeechScorer(letters)}
	if l.whole(d) {
		set = set.Whole()
	}
	features, labels := l.model.Data[0].Type(), l.model.Data[1].Type()
	loader, err := speech.NewLoader(set, speech.LoaderOptions{Utterances: features.Size(1),
		Frames: features.Size(0), Labels: labels.Size(1), Seed: l.Seed})
	if err != nil {
		return d, err
	}
	d.batches, d.about = loader, loader.Info().String()
	return d, nil
}
