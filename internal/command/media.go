package command

import (
	"context"
	"io"

	"github.com/gomem/gomem/data/images"
	"github.com/gomem/gomem/data/speech"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// readPhotos reads images for a classifier: of as many kinds as there are. Label 0 is the
// background.
func readPhotos(ctx context.Context, w io.Writer, c *trainCmd) error {
	config, err := resNetConfig(c.modelFlags)
	if err != nil {
		return err
	}
	spec := c.spec()
	set, err := images.Open(ctx, spec, images.Options{Seed: c.Seed,
		EvalShare: float64(c.EvalShare), Strict: c.Strict}, reading(w, spec))
	if err != nil {
		return asSpec(err)
	}
	c.given = given{set: set}
	if kinds := set.Classes + 1; c.Classes == 0 && kinds != config.Classes {
		return c.past.resize("classes", &c.Classes, kinds)
	}
	return nil
}

// loadPhotos makes batches of images for a classifier.
func loadPhotos(_ context.Context, _ io.Writer, c *trainCmd, m *models.Model) (dataset, error) {
	return batched(c.given.set, c.Seed, m, images.LoaderOptions{Scale: images.Means,
		Classes: m.Classes})
}

// loadPictures reads images for a model that draws, and has it draw some if a
// directory is given.
func loadPictures(ctx context.Context, w io.Writer, c *trainCmd, m *models.Model) (dataset, error) {
	spec := c.spec()
	set, err := images.Open(ctx, spec, images.Options{Seed: c.Seed,
		EvalShare: float64(c.EvalShare), Strict: c.Strict}, reading(w, spec))
	if err != nil {
		return dataset{}, asSpec(err)
	}
	d, err := batched(set, c.Seed, m, images.LoaderOptions{Scale: images.Symmetric})
	if c.Samples != "" && err == nil {
		d.scorer, err = train.SampleWriter(string(c.Samples))
	}
	return d, err
}

// batched cuts images to the model's size.
func batched(set *images.Set, seed uint64, m *models.Model,
	o images.LoaderOptions) (dataset, error) {
	t := m.Data[0].Type()
	o.Images, o.Size, o.Seed = t.Size(0), t.Size(2), seed
	loader, err := images.NewLoader(set, o)
	return dataset{
		batches: loader, about: set.Info.String(), id: set.Info.SHA256,
		formerly: set.Info.Listing,
		facts:    []field{{"kinds", grouped(int64(set.Classes))}},
		classes:  set.ClassNames,
	}, err
}

// readSpeech reads or makes utterances for a model that writes the letters they have.
func readSpeech(ctx context.Context, w io.Writer, c *trainCmd) error {
	spec := c.spec()
	set, err := speech.Open(ctx, spec, speech.Options{Seed: c.Seed,
		EvalShare: float64(c.EvalShare)}, reading(w, spec))
	if err != nil {
		return asSpec(err)
	}
	c.given = given{speech: set}
	c.symbols = symbolsOf(set.Letters)
	return nil
}

// symbolsOf is how many symbols a model has; 0 for as many as it has of itself.
func symbolsOf(l speech.Letters) count {
	if l.Names() == nil {
		return 0
	}
	return count(l.Symbols())
}

// loadSpeech makes batches of utterances.
func loadSpeech(_ context.Context, _ io.Writer, c *trainCmd, m *models.Model) (dataset, error) {
	set := c.given.speech
	features, labels := m.Data[0].Type(), m.Data[1].Type()
	loader, err := speech.NewLoader(set, speech.LoaderOptions{
		Utterances: features.Size(1), Frames: features.Size(0), Labels: labels.Size(1),
		Seed: c.Seed,
	})
	if err != nil {
		return dataset{}, err
	}
	d := dataset{
		batches: loader, about: loader.Info().String(), id: set.Info.SHA256,
		formerly: set.Info.Listing, classes: set.Letters.Names(),
		scorer: train.SpeechScorer(set.Letters),
	}
	if d.classes != nil {
		d.facts = []field{{"letters", string(set.Letters)}}
	}
	return d, nil
}
