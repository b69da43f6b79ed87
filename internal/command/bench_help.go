package command

// benchTexts are what --help says of the flags of what measures and simulates, as flagTexts are.
const benchTexts = `
--table
    Tables to make: 6.1, 6.2, fig6.4, fig6.6, fig6.7, 6.4 (with fig6.8), 6.5, 6.6, 6.7,
    6.8 to 6.14; may be repeated (default: all).
thesis --size
    s64, which is run within 192MiB, or base, which is planned within 12GiB and not run
    (default ${default}).
--runs
    Steps of which a time is the median, after a warm-up (default 3).
thesis --copy-gbps
    Speed of each copy engine in all times (default: the one that gives the thesis' ratio
    of computing to copying).
simulate --setting
    Computations C1 to C3 and links N1 to N3 of the paper, such as C2N1; may be repeated
    (default: all nine).
simulate --trace
    Links as they were measured, instead of drawn ones: lines of seconds, machine from 0,
    Gbit/s that it sends and Gbit/s that it receives from then on, with commas.
simulate --workers
    Workers, two on a machine (default ${default}).
simulate --delay
    Updates that one may miss before it is dropped (default ${default}).
simulate --aggregators
    Machines that add up updates, and as many that hand on models (default ${default}).
simulate --updates
    Updates that a job is played for (default ${default}).
simulate --seed
    What links and stragglers are drawn by (default ${default}).
simulate --figure
    Draw who sends when over which link, in the first setting's first seconds, into a file:
    FILE.png or FILE.svg.
--csv
    Print comma-separated values, with an empty line between tables.
`
