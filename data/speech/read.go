package speech

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Reader reads recordings. Any number of goroutines may use it.
type Reader struct{ analyser *analyser }

// NewReader makes the tables that recordings are analysed with.
func NewReader() *Reader { return &Reader{newAnalyser()} }

// Features are those of a WAV file, as batches have them: [Coefficients] numbers a
// frame. One that has not a single frame is an error.
func (r *Reader) Features(path string) ([]float32, error) {
	samples, rate, err := readWAV(path)
	if err != nil {
		return nil, err
	}
	samples = r.analyser.run(samples, rate)
	if Frames(len(samples)) == 0 {
		return nil, fmt.Errorf("WAV file of %d samples: want %d or more", len(samples), window)
	}
	return r.analyser.features(samples), nil
}

// List gives the WAV files of a directory, by name, without those of directories in
// it.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var paths []string
	for _, e := range entries {
		if !e.IsDir() && strings.EqualFold(filepath.Ext(e.Name()), ".wav") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, err
}
