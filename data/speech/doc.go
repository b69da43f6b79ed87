// Package speech turns recorded or synthetic speech on this machine into batches
// for a model that writes down what it hears, one letter at a time.
//
// # From a spec to batches
//
// [Open] lists the utterances of a set named by a spec; a [Loader] makes batches of
// their features and letters. Nothing is downloaded and no file is written.
//
//   - formant needs no set-up: the first sentences of the doc comments of the
//     local Go toolchain, as package data reads them, are spoken by the
//     synthesiser below. Sentences with digits or symbols are left out, and so are
//     repetitions.
//   - csv:FILE is Mozilla DeepSpeech's list: the columns wav_filename,
//     wav_filesize and transcript, paths relative to FILE, and WAV files of PCM of 8,
//     16, 24 or 32 bits or of floats, mono, at any rate from 2 to 400 kHz. A length that
//     was written to a pipe, and so unknown, is that of the file. All files are read when
//     the set is opened, so that bad ones are found before training, all of them at once.
//     Other rates than 16 kHz are
//     resampled whenever a batch has the recording, by a windowed sinc.
//   - espeak:FILE has each line of FILE spoken by eSpeak NG or eSpeak, where one is
//     installed. As starting a program is slow and may fail, all lines are spoken
//     when the set is opened, and the features stay in memory, 5 KB a second.
//
// A transcript is brought to the 28 letters of [Alphabet], those of DeepSpeech, and in
// csv:FILE to whatever other letters the transcripts have: a set's Letters, in the order
// of their labels, are those 28 and then the others by their code points. Capitals become
// small, what Unicode can compose is composed, punctuation is dropped and hyphens separate
// words. What is read out in letters but is none, such as a digit, is refused.
//
// An utterance is held out if the hash of its text falls in 1 of 50 classes, or in
// more of them for a larger Options.EvalShare, always in the same order. So
// no sentence is on both sides, whoever speaks it, and a rerun, a larger sample and
// a different machine agree.
//
// # The synthesiser
//
// Letters become phones by a table of some ninety rules, the longest match first;
// English spells worse than that, but what matters is that the same letters sound
// the same. A phone is two or three targets: the formants of the throat, the
// amplitude of the voice, and the amplitude, centre and band of noise. Klatt's
// cascade of resonators (1980) filters a train of pulses that falls in pitch along
// the sentence, a further resonator white noise. Every 5 ms the filters go part of
// the way to the targets of the present phone, so that, as in speech, a consonant is
// heard in the vowels next to it. Speed, pitch, length of the throat and of each
// phone depend on a hash of the sentence and the seed: each sentence has a speaker
// of its own, and always the same. A second of speech takes about a millisecond, so
// samples are made where they are needed and never stored.
//
// # Features
//
// A frame is 32 ms, every 20 ms, of which there are 26 mel-frequency cepstral
// coefficients (Davis and Mermelstein 1980): pre-emphasis 0.97, Hamming window,
// power of a Fourier transform of 512 points, 40 triangular filters evenly spaced
// from 20 to 8000 Hz on the mel scale, logarithm, orthonormal cosine transform. The
// coefficients include the one for loudness. Over an utterance each is then given
// mean 0 and deviation 1, which DeepSpeech does not do: a network learns from
// numbers of one size sooner, and a different microphone or loudness changes
// nothing. Liftering, a factor for each coefficient, would be undone by that, so it
// is not there. Features are computed for each batch, on all cores: a second of
// speech takes one or two milliseconds.
//
// # Reading
//
// [Letters.Decode] reads the likeliest symbol of each frame, merges repetitions and drops
// blanks; [CER] counts the errors. The blank is the last symbol, as in ops.CTCLoss.
//
// What this package does not do: compressed audio, several channels, noise or other
// augmentation, language models, or beam search.
package speech
