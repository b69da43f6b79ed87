// Package images turns pictures on this machine into batches for models that
// name what they see or draw more of it.
//
// # From a spec to batches
//
// [Open] reads the set that a spec names, and a [Loader] makes batches of it.
// Nothing is downloaded and nothing is printed: Set.Info says what was read.
//
//   - glyphs needs nothing: digits and letters, 62 kinds, drawn from ten faces of
//     the Go fonts with a random face, size, slant, place, pair of colours and
//     grain. There are 50,000 images for training and 1,000 held out, as evenly
//     spread over the kinds as that divides, and none is stored: an image is a
//     function of the seed and its number. The small-capital faces are left out,
//     whose lower case looks like capitals.
//   - dir:PATH has a directory for each kind, with PNG and JPEG files at any
//     depth. Other files are passed over, and so is what is hidden. Symbolic links,
//     pipes and the like, pictures of other kinds, and what may not be read or is no
//     whole picture, are left out and counted; Options.Strict refuses them.
//   - cifar10:DIR is the binary version of CIFAR-10: data_batch_1.bin to
//     data_batch_5.bin, and test_batch.bin, which is held out whole.
//   - icons:DIR is an icon theme, or several: an icon's name is its kind, whatever
//     its size or place. A kind needs two files to be learnt from one and
//     recognised in another; names with a single file are dropped and counted.
//
// Files are checked by decoding them when a set is opened, on all cores, so that a
// corrupt one is found then and not a surprise in an epoch's middle. A picture is seen
// upright, as the orientation in its Exif data says.
// They stay in memory as they are on disk, compressed: a batch then cannot fail.
// Options.MaxImages bounds how many.
//
// # Held-out images
//
// A file of dir: and icons: is held out if the hash of its name below the root
// falls in 1 of 50 classes, whatever else there is. A larger Options.EvalShare takes
// more classes, always in the same order; of glyphs it takes the last of all.
//
// # Batches
//
// A batch is pixels f32[N 3 H W] and labels i32[N]. Labels count from 1, as
// ImageNet's do: 0 is the background class, of which there are no images, and
// marks the rows behind the last held-out image, which are zero. A model needs a
// class more than the set.
//
// [Loader.Train] is a pure function of the set, the options and the step; each
// epoch has an order of its own, and any number of goroutines may ask for steps.
// Of files and CIFAR-10 it cuts a random square with 3/4 or more of the shorter
// side, and mirrors half of the images, but not icons, which mirroring may give
// another meaning: next is previous. Held-out images are the square in the
// middle. What is transparent shows grey. Images are decoded, scaled and drawn
// where they are needed, on all cores; a glyph of 64 by 64 pixels takes a tenth of
// a millisecond or two.
//
// What this package does not do: sets larger than memory, other distortions,
// colour management, and animation, of which it would see the first frame.
package images
