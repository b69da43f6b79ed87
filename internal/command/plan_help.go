package command

// planTexts are what --help says of some flags of plan, as in flagTexts.
const planTexts = `
plan --device
    The machine to plan for: cpu, this one; cuda or cuda:N, its GPU; or sim:NAME, one of
    titanx, titanx-thesis, h200-pcie5 and gh200, or a file NAME.json (default: the first
    GPU that can be used, else cpu).
--device-reserve
    Of a GPU's budget, or a simulated one's, what plans leave to its context, kernels and
    libraries (default: what they take here, and an eighth; 0 where nothing is to be measured).
plan --workers
    Plan what one of so many workers does, and print of each weight whether they send it whole
    or by factors, with the bytes of both. lda: of so many, the one that takes most memory.
plan --data
    lda: the documents to plan for, as train reads them (default: imagined ones). gpt: jsonl:FILE,
    to plan for rows of several documents, and to print how long they are.
plan --tokenizer
    gpt: the sub-words that documents have (default: those of --network, or learnt).
plan --tokens
    lda: words of documents that are imagined, which come by Zipf's law (default 100000000).
plan --length
    moe, transformer, gpt, lstm-lm, deepspeech: see train. lda: words of an imagined document
    (default 100).
plan --vocabulary
    moe, transformer, gpt, lstm-lm, topic: see train. lda: different words of imagined
    documents (default 100000).
--lengths
    gpt: plan for rows of each of these lengths, and print how documents fill them, the least
    memory, and how fast a plan within the budget is. Needs --data.
plan --sync
    How these workers keep in step; see train (default ring).
`
