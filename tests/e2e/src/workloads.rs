//! The programs as data: what the tests run ([`ALL`]) and what the speed measurements run ([`MEASURED`]). Drivers and inputs stand in
//! `tests/programs`, jars in `.cache/jars`.

use crate::programs::Program;

const PLAIN: Program = Program {
    name: "",
    jars: &[],
    options: &[],
    main: "",
    args: &[],
    stdin: 0,
    exit: 0,
    since: 17,
    until: u32::MAX,
    steady: None,
};
const SCIMARK: Program = Program {
    jars: &["scimark-2.0"],
    main: "SciMarkDriver",
    steady: Some("jnt.scimark2.*"),
    ..PLAIN
};
const H2: Program = Program {
    jars: &["h2-2.3.232"],
    main: "SqlDriver",
    ..PLAIN
};
const STREAMS: Program = Program {
    main: "Streams",
    stdin: 5000,
    steady: Some("Streams.*"),
    ..PLAIN
};
const ECJ: Program = Program {
    jars: &["ecj-3.38.0"],
    main: "org.eclipse.jdt.internal.compiler.batch.Main",
    ..PLAIN
};
const HSQLDB: Program = Program {
    jars: &["hsqldb-2.7.3"],
    main: "SqlDriver",
    ..PLAIN
};
const XALAN: Program = Program {
    jars: &["xalan-2.7.3", "serializer-2.7.3"],
    main: "XalanDriver",
    args: &["300", "6"],
    ..PLAIN
};
const FOP: Program = Program {
    jars: &[
        "fop-2*",
        "fop-core*",
        "fop-events*",
        "fop-util*",
        "batik*",
        "xmlgraphics*",
        "commons-io*",
        "commons-logging*",
        "fontbox*",
        "xml-apis*",
        "xalan-2.7.3",
        "serializer*",
    ],
    options: &["-Djava.awt.headless=true"],
    main: "FopDriver",
    ..PLAIN
};
const LUCENE: Program = Program {
    jars: &["lucene-core-9.12.0"],
    main: "LuceneDriver",
    ..PLAIN
};
const SCALA: Program = Program {
    name: "scala",
    jars: &[
        "scala-compiler-2.13.14",
        "scala-library-2.13.14",
        "scala-reflect-2.13.14",
        "jline*",
        "jna*",
    ],
    main: "scala.tools.nsc.Main",
    args: &["-usejavacp", "-d", "{out}", "{input}/scala-sources.scala"],
    ..PLAIN
};
const JYTHON: Program = Program {
    jars: &["jython-standalone-2.7.4"],
    options: &["-Dpython.cachedir.skip=true"],
    main: "org.python.util.jython",
    ..PLAIN
};

/// Every program that the tests run, in tenths of a second to a few seconds.
pub const ALL: &[Program] = &[
    Program {
        name: "ecj",
        args: &[
            "-17",
            "-nowarn",
            "-g",
            "-proc:none",
            "-d",
            "{out}",
            "{lang3}",
        ],
        ..ECJ
    },
    Program {
        name: "h2",
        args: &[
            "jdbc:h2:mem:x;LOCK_TIMEOUT=600000",
            "3",
            "1200",
            "3",
            "platform",
        ],
        ..H2
    },
    Program {
        name: "h2-virtual",
        since: 21,
        args: &[
            "jdbc:h2:mem:x;LOCK_TIMEOUT=600000",
            "5",
            "600",
            "3",
            "virtual",
        ],
        ..H2
    },
    Program {
        name: "hsqldb",
        args: &[
            "jdbc:hsqldb:mem:x;hsqldb.tx=mvcc",
            "2",
            "800",
            "3",
            "platform",
        ],
        ..HSQLDB
    },
    Program {
        name: "derby",
        jars: &["derby-10.14.2.0"],
        options: &["-Dderby.stream.error.file=/dev/null"],
        main: "SqlDriver",
        args: &[
            "jdbc:derby:memory:x;create=true",
            "2",
            "250",
            "2",
            "platform",
        ],
        ..PLAIN
    },
    Program {
        name: "xalan",
        ..XALAN
    },
    // The older class files, with jsr and ret.
    Program {
        name: "xalan-old",
        jars: &["xalan-2.7.2", "serializer-2.7.3"],
        ..XALAN
    },
    Program {
        name: "fop",
        args: &["25", "2"],
        ..FOP
    },
    Program {
        name: "lucene",
        args: &["1500", "30"],
        ..LUCENE
    },
    Program {
        name: "jython",
        args: &["{input}/jython.py", "2"],
        exit: 1,
        ..JYTHON
    },
    SCALA,
    Program {
        name: "kotlin",
        jars: &["kotlin-stdlib-2.0.21", "annotations*"],
        main: "KotlinDriver",
        args: &["150"],
        steady: Some("kotlin.*"),
        ..PLAIN
    },
    Program {
        name: "clojure",
        jars: &["clojure-1.11.3", "spec.alpha*", "core.specs.alpha*"],
        main: "clojure.main",
        args: &["{input}/clojure.clj", "6"],
        ..PLAIN
    },
    Program {
        name: "groovy",
        jars: &["groovy-4.0.24"],
        main: "groovy.ui.GroovyMain",
        args: &["{input}/groovy.groovy", "10"],
        // Its compiler refuses the class files of a newer JDK.
        until: 23,
        ..PLAIN
    },
    Program {
        name: "fft",
        args: &["fft", "400"],
        ..SCIMARK
    },
    Program {
        name: "sor",
        args: &["sor", "400"],
        ..SCIMARK
    },
    Program {
        name: "montecarlo",
        args: &["montecarlo", "1000000"],
        ..SCIMARK
    },
    Program {
        name: "sparse",
        args: &["sparse", "1000"],
        ..SCIMARK
    },
    Program {
        name: "lu",
        args: &["lu", "60"],
        ..SCIMARK
    },
    Program {
        name: "exit",
        args: &["exit"],
        exit: 3,
        ..STREAMS
    },
    Program {
        name: "throw",
        args: &["throw"],
        exit: 1,
        ..STREAMS
    },
    Program {
        name: "halt",
        args: &["halt"],
        exit: 42,
        ..STREAMS
    },
    Program {
        name: "hook",
        args: &["hook"],
        exit: 7,
        ..STREAMS
    },
];

/// The programs as the speed measurements run them: 2 to 6 seconds of CPU, so that the start of the JVM counts for little.
pub const MEASURED: &[Program] = &[
    Program {
        name: "fft",
        args: &["fft", "40000"],
        ..SCIMARK
    },
    Program {
        name: "sor",
        args: &["sor", "60000"],
        ..SCIMARK
    },
    Program {
        name: "montecarlo",
        args: &["montecarlo", "120000000"],
        ..SCIMARK
    },
    Program {
        name: "sparse",
        args: &["sparse", "400000"],
        ..SCIMARK
    },
    Program {
        name: "lu",
        args: &["lu", "8000"],
        ..SCIMARK
    },
    Program {
        name: "heapsort",
        main: "HeapSort",
        args: &["1000000", "10"],
        ..PLAIN
    },
    Program {
        name: "moldyn",
        main: "MolecularDynamics",
        args: &["8", "150"],
        ..PLAIN
    },
    Program {
        name: "lzw",
        main: "Lzw",
        args: &["2000", "20"],
        ..PLAIN
    },
    // Large enough that what C2 spends on inlining trace into itself (3.5 s) is not most of it.
    Program {
        name: "raytracer",
        main: "RayTracer",
        args: &["900", "7"],
        ..PLAIN
    },
    // Its parser package against the rest in its jar: every JDK can do that.
    Program {
        name: "ecj",
        args: &[
            "-17",
            "-nowarn",
            "-g",
            "-proc:none",
            "-proceedOnError",
            "-d",
            "{out}",
            "{ecj-parser}",
        ],
        ..ECJ
    },
    Program {
        name: "h2",
        args: &[
            "jdbc:h2:mem:x;LOCK_TIMEOUT=600000",
            "1",
            "4000",
            "10",
            "platform",
        ],
        ..H2
    },
    Program {
        name: "hsqldb",
        args: &[
            "jdbc:hsqldb:mem:x;hsqldb.tx=mvcc",
            "1",
            "4000",
            "10",
            "platform",
        ],
        ..HSQLDB
    },
    Program {
        name: "xalan",
        args: &["300", "80"],
        ..XALAN
    },
    Program {
        name: "fop",
        args: &["40", "4"],
        ..FOP
    },
    Program {
        name: "lucene",
        args: &["3000", "50"],
        ..LUCENE
    },
    Program {
        name: "jython",
        args: &["{input}/jython.py", "20"],
        exit: 4,
        ..JYTHON
    },
];

/// Looks for task tags in its parser package, which keeps `Scanner.checkTaskTag` busy: the source document's figure 4.
pub const TASK_TAGS: Program = Program {
    name: "ecj task tags",
    args: &[
        "-17",
        "-proc:none",
        "-proceedOnError",
        "-warn:tasks(TODO|FIXME|XXX)",
        "-d",
        "{out}",
        "{ecj-parser}",
    ],
    ..ECJ
};

/// For what the sites lens costs: the Scala compiler, streams, boxes, collections and strings, and three of the programs above for so long that the JIT compilers no longer
/// take most of the time.
pub const ALLOCATING: [Program; 5] = [
    Program {
        name: "ecj",
        args: &[
            "-17",
            "-nowarn",
            "-g",
            "-proc:none",
            "-repeat",
            "6",
            "-d",
            "{out}",
            "{lang3}",
        ],
        ..ECJ
    },
    Program {
        name: "h2",
        args: &[
            "jdbc:h2:mem:x;LOCK_TIMEOUT=600000",
            "1",
            "4000",
            "90",
            "platform",
        ],
        ..H2
    },
    SCALA,
    Program {
        name: "lucene",
        args: &["14000", "350"],
        ..LUCENE
    },
    Program {
        name: "boxes",
        main: "Boxes",
        args: &["12000"],
        ..PLAIN
    },
];

/// Adds vectors of 16 KB, under a second plain and twenty times that with a counter in the loop: for the measurement of vectorized loops.
pub const VECTOR_ADD: Program = Program {
    name: "vector add",
    main: "VectorAdd",
    args: &["4096", "1000000"],
    ..PLAIN
};
