package main

import (
	"context"
	"io"

	"github.com/gomem/gomem/data/images"
	"github.com/gomem/gomem/data/speech"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// loadPhotos reads images for a classifier.
func loadPhotos(ctx context.Context, w io.Writer, c *trainCmd, m *models.Model) (dataset, error) {
	return loadImages(ctx, w, c, m, images.LoaderOptions{Scale: images.Means, Classes: m.Classes})
}

// loadPictures reads images for a model that draws, and has it draw some if a
// directory is given.
func loadPictures(ctx context.Context, w io.Writer, c *trainCmd, m *models.Model) (dataset, error) {
	d, err := loadImages(ctx, w, c, m, images.LoaderOptions{Scale: images.Symmetric})
	if c.Samples != "" && err == nil {
		d.scorer, err = train.SampleWriter(string(c.Samples))
	}
	return d, err
}

// loadImages reads images and cuts them to the model's size.
func loadImages(ctx context.Context, w io.Writer, c *trainCmd, m *models.Model,
	o images.LoaderOptions) (dataset, error) {
	spec := c.spec("glyphs")
	set, err := images.Open(ctx, spec, images.Options{Seed: c.Seed}, reading(w, spec))
	if err != nil {
		return dataset{}, asSpec(err)
	}
	t := m.Data[0].Type()
	o.Images, o.Size, o.Seed = t.Size(0), t.Size(2), c.Seed
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
	set, err := speech.Open(ctx, spec, speech.Options{Seed: c.Seed}, reading(w, spec))
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
