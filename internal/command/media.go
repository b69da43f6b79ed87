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
	spec := c.spec("glyphs")
	set, err := images.Open(ctx, spec, images.Options{Seed: c.Seed,
		EvalShare: float64(c.EvalShare)}, reading(w, spec))
	if err != nil {
		return asSpec(err)
	}
	c.given = given{set: set}
	if kinds := set.Classes + 1; c.Classes == 0 && kinds != config.Classes {
		return c.resize("classes", &c.Classes, kinds)
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
	spec := c.spec("glyphs")
	set, err := images.Open(ctx, spec, images.Options{Seed: c.Seed,
		EvalShare: float64(c.EvalShare)}, reading(w, spec))
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
		facts:   []field{{"kinds", grouped(int64(set.Classes))}},
		classes: set.ClassNames,
	}, err
}

// loadSpeech reads or makes utterances.
func loadSpeech(ctx context.Context, w io.Writer, c *trainCmd, m *models.Model) (dataset, error) {
	spec := c.spec("formant")
	set, err := speech.Open(ctx, spec, speech.Options{Seed: c.Seed,
		EvalShare: float64(c.EvalShare)}, reading(w, spec))
	if err != nil {
		return dataset{}, asSpec(err)
	}
	features, labels := m.Data[0].Type(), m.Data[1].Type()
	loader, err := speech.NewLoader(set, speech.LoaderOptions{
		Utterances: features.Size(1), Frames: features.Size(0), Labels: labels.Size(1),
		Seed: c.Seed,
	})
	if err != nil {
		return dataset{}, err
	}
	return dataset{
		batches: loader, about: loader.Info().String(), id: set.Info.SHA256,
		scorer: train.SpeechScorer,
	}, nil
}
