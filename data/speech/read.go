package speech

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gomem/gomem/data"
)

// Reader reads recordings. Any number of goroutines may use it.
type Reader struct{ analyser *analyser }

// NewReader makes the tables that recordings are analysed with.
func NewReader() *Reader { return &Reader{newAnalyser()} }

// Features are those of a WAV file, as batches have them: [Coefficients] numbers a
// frame. One that has not a single frame is an error.
func (r *Reader) Features(path string) ([]float32, error) {
	samples, rate, _, err := readWAV(path)
	if err != nil {
		return nil, err
	}
	return r.analysed(samples, rate)
}

// maxStream bounds what is read of a stream, in bytes: nine hours.
const maxStream = 1 << 30

// FeaturesOf is Features of a WAV file that comes as a stream.
func (r *Reader) FeaturesOf(in io.Reader) ([]float32, error) {
	samples, rate, err := readSamples(io.LimitReader(in, maxStream))
	if err != nil {
		return nil, data.Remedied(err)
	}
	return r.analysed(samples, rate)
}

// analysed are the features of samples at a rate.
func (r *Reader) analysed(samples []float32, rate int) ([]float32, error) {
	samples = r.analyser.run(samples, rate)
	if Frames(len(samples)) == 0 {
		return nil, fmt.Errorf("WAV file of %d samples: want %d or more", len(samples), window)
	}
	return r.analyser.features(samples), nil
}

// Seconds is how long so many frames last.
func Seconds(frames int) float64 {
	return float64(max(0, frames-1)*hop+min(frames, 1)*window) / Rate
}

// List gives the WAV files of a directory, by name, without hidden ones and those of
// directories in it.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var paths []string
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") &&
			strings.EqualFold(filepath.Ext(e.Name()), ".wav") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, err
}
