package images

import (
	"errors"
	"image"
	"os"
	"path/filepath"
	"strings"

	"github.com/gomem/gomem/internal/regular"
)

// Read reads a picture, a PNG or JPEG of at most 2²⁶ pixels, as it is seen upright. Only
// regular files are read.
func Read(path string) (image.Image, error) {
	content, err := regular.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return decode(content)
}

// Decode is [Read] of a file's content.
func Decode(content []byte) (image.Image, error) {
	if len(content) == 0 {
		return nil, errors.New("no picture: it is empty")
	}
	return decode(content)
}

// List gives the PNG and JPEG files of a directory, by name, without hidden ones and those
// of directories in it.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var paths []string
	for _, e := range entries {
		switch strings.ToLower(filepath.Ext(e.Name())) {
		case ".png", ".jpg", ".jpeg":
			if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				paths = append(paths, filepath.Join(dir, e.Name()))
			}
		}
	}
	return paths, err
}

// Pixels writes what held-out batches have of a picture of any size to dst, of
// 3·size·size elements: the square in its middle, scaled, its channels apart.
func Pixels(dst []float32, src image.Image, size int, scale Scale) {
	canvas := image.NewRGBA(image.Rect(0, 0, size, size))
	crop(canvas, src, nil)
	levels := scale.levels()
	planes(dst[:3*size*size], canvas.Pix, &levels)
}
