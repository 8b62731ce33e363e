;; Clojure code, compiled while it loads: persistent collections, transducers, lazy sequences, multimethods, loop/recur, exceptions.
(defn collatz [n] (loop [n (long n) steps 0] (if (= n 1) steps (recur (if (even? n) (quot n 2) (inc (* 3 n))) (inc steps)))))

(defmulti area :shape)
(defmethod area :square [{:keys [edge]}] (* edge edge))
(defmethod area :circle [{:keys [radius]}] (* 3 radius radius))
(defmethod area :default [s] (throw (ex-info "no area" s)))

(defn safe-area [s] (try (area s) (catch clojure.lang.ExceptionInfo e (count (.getMessage e))) (finally nil)))

(defn primes [n]
  (loop [candidates (range 2 n) found []]
    (if-let [p (first candidates)]
      (if (> (* p p) n) (into found candidates) (recur (doall (remove #(zero? (rem % p)) candidates)) (conj found p)))
      found)))

(defn ackermann [m n]
  (cond (zero? m) (inc n) (zero? n) (ackermann (dec m) 1) :else (ackermann (dec m) (ackermann m (dec n)))))

(let [rounds (Long/parseLong (first *command-line-args*))]
  (loop [r 0 sum 0]
    (if (< r rounds)
      (let [shapes (map #(case (long (mod % 3)) 0 {:shape :square :edge %} 1 {:shape :circle :radius %} {:shape :blob}) (range 300))
            xf (comp (filter odd?) (map #(* % %)) (take-while #(< % 200000)) (partition-all 3))
            parts [(reduce + (map safe-area shapes))
                   (transduce xf (completing (fn [acc p] (+ acc (* (count p) (first p))))) 0 (range 1000))
                   (reduce max (map collatz (range 1 2000)))
                   (reduce + (primes (+ 3000 r)))
                   (ackermann 2 9)
                   (hash (frequencies (map #(mod (hash (str %)) 17) (range 2000))))
                   (count (reduce-kv (fn [m k v] (if (even? v) (dissoc m k) (assoc m k (inc v)))) {} (zipmap (range 1000) (cycle [1 2 3]))))]]
        (recur (inc r) (reduce (fn [a b] (mod (+ (* 31 a) b) 1000000007)) sum parts)))
      (println "clojure: checksum" sum))))
